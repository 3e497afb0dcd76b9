"""What a conversation holds, found by rule in one pass: who said what, calls and their outcomes, names, values, tasks.

Summarisers choose from it what to write, verification looks whether they did, stages and reports say what was done.
"""
