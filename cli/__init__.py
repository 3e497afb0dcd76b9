"""The command line: parses, calls one operation of core/service, shows the result."""
