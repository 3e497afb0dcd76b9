"""What happens in the example session: requests, findings, changes, in the order in which they happened."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from scripts.example_shop import ENTITIES

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

ROOT = "/home/ada/cornershop/"


@dataclass(frozen=True)
class Call:
    """A tool call; `out` is what a command prints, `failing` the tests that fail (name, newline, why)."""

    tool: str
    given: dict[str, Json]
    out: str = ""
    failing: Sequence[str] = ()


class Teller(Protocol):
    """What a story needs of a session."""

    def user(self, text: str) -> None:
        """Let the person say something."""

    def step(self, *calls: Call, text: str = "", think: str = "") -> None:
        """Let the model answer once."""


def read(path: str, offset: int = 1, limit: int = 0) -> Call:
    """Read a file, or lines of it."""
    part: dict[str, Json] = {"offset": offset, "limit": limit} if limit else {}
    return Call("Read", {"file_path": ROOT + path, **part})


def grep(pattern: str) -> Call:
    """Search all files."""
    return Call("Grep", {"pattern": pattern, "path": ROOT.rstrip("/"), "output_mode": "content"})


def bash(command: str, why: str, out: str = "", failing: Sequence[str] = ()) -> Call:
    """Run a command."""
    return Call("Bash", {"command": command, "description": why}, out, failing)


def edit(path: str, old: str, new: str) -> Call:
    """Replace a text that stands once in a file."""
    return Call("Edit", {"file_path": ROOT + path, "old_string": old, "new_string": new})


def write(path: str, content: str) -> Call:
    """Write a new file."""
    return Call("Write", {"file_path": ROOT + path, "content": content})


def todos(done: int, *items: str) -> Call:
    """Write the list: so many done, the next one in progress."""
    states = ["completed"] * done + ["in_progress"] + ["pending"] * len(items)
    listed: list[Json] = [
        {"content": item, "status": state, "activeForm": item} for item, state in zip(items, states, strict=False)
    ]
    return Call("TodoWrite", {"todos": listed})


def tell(s: Teller) -> None:
    """Tell it all."""
    cents(s)
    charged_twice(s)
    last_piece(s)
    slow_list(s)
    public_answers(s)
    refunds(s)


# One: cents -----------------------------------------------------------------------------------------------------

CENTS = (
    "reproduce a difference between cart and invoice",
    "one function that splits an amount over lines",
    "use it in cart, checkout and invoicing",
    "tests for awkward carts",
    "run everything and look at the diff",
)


def checkout_log(lines: int, seed: int) -> str:
    """The shop's log: real carts, added up as the cart and as the invoice add them up."""
    rng = random.Random(seed)
    rows = []
    for number in range(lines):
        goods = [rng.randint(1, 4) * rng.choice((199, 249, 333, 450, 1095, 1299)) for _ in range(rng.randint(1, 5))]
        percent = rng.choice((0, 0, 5, 10, 15))
        cart = sum(goods) - sum(round(line * percent / 100) for line in goods)
        invoice = sum(goods) - round(sum(goods) * percent / 100)
        minute, second = divmod(number * 7, 60)
        rows.append(
            f"2026-01-18T{9 + minute // 60:02}:{minute % 60:02}:{second:02}Z INFO checkout order={10231 + number} "
            f"lines={len(goods)} percent={percent} cart_total={cart} invoice_total={invoice} diff={invoice - cart}"
        )
    return "\n".join(rows)


SPLIT = '''"""Whole cents, and how to split them."""

from __future__ import annotations

from collections.abc import Sequence


def split(cents: int, weights: Sequence[int]) -> list[int]:
    """Split an amount in proportion to weights; the shares add up to the amount, always."""
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    shares = [cents * weight // whole for weight in weights]
    for i in range(cents - sum(shares)):
        shares[i] += 1
    return shares
'''
SPLIT_OLD = """    for i in range(cents - sum(shares)):
        shares[i] += 1
"""
SPLIT_NEW = """    # The cents that are left go to the shares that lost most by rounding down, the first one first.
    by_loss = sorted(range(len(weights)), key=lambda i: (-(cents * weights[i] % whole), i))
    for i in by_loss[: cents - sum(shares)]:
        shares[i] += 1
"""

TEST_SPLIT = """from __future__ import annotations

import random

import pytest

from shop.money import split


@pytest.mark.parametrize(
    ("cents", "weights", "shares"),
    [(10, [1, 1, 1], [4, 3, 3]), (0, [5, 5], [0, 0]), (7, [0, 0], [0, 0]), (100, [333, 333, 334], [33, 33, 34])],
)
def test_shares_are_fair_to_the_cent(cents: int, weights: list[int], shares: list[int]) -> None:
    assert split(cents, weights) == shares


def test_shares_always_add_up() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        weights = [rng.randint(1, 5000) for _ in range(rng.randint(1, 8))]
        cents = rng.randint(0, sum(weights))
        assert sum(split(cents, weights)) == cents
"""


def cents(s: Teller) -> None:
    """Customers see another total in the cart than on the invoice."""
    s.user(
        "Customers write that the invoice is sometimes one cent off from what the cart said. Please find out why and fix "
        "it. Rules for this repo: money is whole cents, never floats in stored values. Never edit a migration that exists. "
        "Don't add dependencies. And don't touch the public JSON of /api unless I ask for it."
    )
    s.step(
        bash("git log --oneline | head -12", "Recent history", GIT_LOG),
        grep(r"round\("),
        read("README.md"),
        text="I'll start with where amounts are rounded, and what changed lately.",
        think="One cent: two places round differently. Find every rounding first, then compare cart and invoice.",
    )
    s.step(read("shop/cart.py"), read("shop/invoicing.py"), read("shop/checkout.py"))
    s.step(
        bash("tail -n 160 log/checkout.log", "Look at yesterday's checkouts", checkout_log(160, 1)),
        text="`Cart.discount_cents` rounds each line, `discount_shares` rounds the whole and then each share. The log "
        "writes both totals, so it should show which carts differ.",
    )
    s.step(
        read("shop/models/order.py"),
        read("shop/models/order_line.py"),
        read("shop/models/coupon.py"),
        read("shop/models/invoice.py"),
        text="Only carts with a coupon and several lines differ, never those without. Now the models: where could the "
        "share of each line be kept?",
    )
    s.step(
        read("migrations/0001_first.sql"),
        read("shop/store/order_lines.py"),
        read("tests/test_cart.py"),
        text="`order_lines.discount_cents` exists already and checkout writes 0 into it. So no migration is needed.",
    )
    s.step(todos(0, *CENTS))
    s.step(
        Call("ExitPlanMode", {"plan": PLAN_CENTS}),
        text="Here is what I would do.",
        think="The cart must show the same as the invoice. Decide the discount once, on the whole; split it with the "
        "largest remainder; store the share per line; the invoice adds up what is stored.",
    )
    s.step(write("shop/money.py", SPLIT), write("tests/test_money.py", TEST_SPLIT), todos(1, *CENTS))
    s.step(
        edit("shop/cart.py", "            return sum(round(line.cents * self.coupon.percent / 100) for line in self.lines)\n",
             "            return (self.goods_cents() * self.coupon.percent + 50) // 100\n"),
        edit("shop/cart.py", '"""What the coupon takes off, line by line."""', '"""What the coupon takes off the goods as a whole, rounded half up."""'),
        edit("shop/cart.py", "    def shipping_cents(self)", CART_SHARES + "    def shipping_cents(self)"),
        edit("shop/cart.py", "from shop.models.coupon import Coupon\n", "from shop.models.coupon import Coupon\nfrom shop.money import split\n"),
    )  # fmt: skip
    s.step(
        edit("shop/checkout.py", "    for line in cart.lines:\n        OrderLineStore(connection).add(OrderLine(0, order.id, line.sku, line.quantity, line.unit_cents, 0, line.tax_rate))\n",
             "    for line, share in zip(cart.lines, cart.discount_shares(), strict=True):\n        OrderLineStore(connection).add(\n            OrderLine(0, order.id, line.sku, line.quantity, line.unit_cents, share, line.tax_rate)\n        )\n"),
        edit("shop/invoicing.py", INVOICE_OLD, INVOICE_NEW),
        text="Cart done. Now checkout stores the shares, and the invoice uses what is stored.",
    )  # fmt: skip
    s.step(
        bash(
            "python -m pytest -v",
            "Run all tests",
            failing=[
                "test_shares_are_fair_to_the_cent\n    def test_shares_are_fair_to_the_cent(cents, weights, shares):\n"
                ">       assert split(cents, weights) == shares\nE       assert [34, 33, 33] == [33, 33, 34]\n"
                "E         At index 0 diff: 34 != 33\n\ntests/test_money.py:15: AssertionError"
            ],
        ),
        todos(3, *CENTS),
    )
    s.step(
        edit("shop/money.py", SPLIT_OLD, SPLIT_NEW),
        text="My draft gives the cents that are left to the first lines, whatever they lost: 100 over 333/333/334 must give "
        "the odd cent to the last. Sorted by what rounding took away it is fair.",
    )
    s.step(
        bash("python -m pytest -q", "Run all tests again"),
        edit("tests/test_cart.py", "def test_an_amount_never", TEST_CART_SHARES + "def test_an_amount_never"),
        text="Green. I add a cart that used to differ.",
    )
    s.step(
        bash("python -m pytest -v tests/test_cart.py tests/test_money.py", "Run the new tests"),
        bash("git diff", "Review"),
    )
    s.step(
        bash("git commit -qam 'Split discounts once, to the cent' && git log --oneline | head -1", "Commit", "b81e0f2 Split discounts once, to the cent"),
        todos(5, *CENTS),
    )  # fmt: skip
    s.step(
        text="Fixed. The cart rounded the discount line by line, the invoice rounded it as a whole; with two or more lines "
        "they could differ by a cent each way. Now the discount is decided once (`Cart.discount_cents`, half up), "
        "split by `shop.money.split` so that the shares always add up, stored in `order_lines.discount_cents`, and the "
        "invoice adds up what is stored. No migration, no change of the public JSON. Old orders keep 0 in their lines: "
        "their invoices exist already and are never drawn up again."
    )


GIT_LOG = """4c1d9aa (HEAD -> fix/cents, main) Show the postage in the cart
e07b3c5 Coupons: minimum value
91f2d44 Stock: reorder level per warehouse
7ab0c19 Invoices: tax by rate
d5520e8 Checkout: one transaction
2f6cc37 Reviews are hidden until staff has seen them
b4de6a0 Suppliers: currency
a3905f1 Reservations
1e8874d Refunds by line
66c0f2b Migrations run at start
0d37a95 API: only staff may write
5b2e1c8 First version"""
PLAN_CENTS = """# Same cents everywhere

1. `shop/money.py`: `split(cents, weights)`, largest remainder, shares add up.
2. `Cart.discount_cents`: once, on the goods as a whole. `Cart.discount_shares`: split by line value.
3. `checkout.place` stores the share of each line in `order_lines.discount_cents` (the column is there).
4. `invoicing.draw_up` uses the stored shares; its `percent` parameter goes.
5. Tests: shares add up for 2,000 random carts; cart total equals invoice total.

Not touched: migrations, the public JSON, invoices that exist."""
CART_SHARES = '''    def discount_shares(self) -> list[int]:
        """The discount split over the lines; adds up to `discount_cents`."""
        return split(self.discount_cents(), [line.cents for line in self.lines])

'''
INVOICE_OLD = '''def discount_shares(order: Order, lines: list[OrderLine], percent: int) -> list[int]:
    """Split the discount over the lines."""
    goods = sum(line.quantity * line.unit_cents for line in lines)
    discount = round(goods * percent / 100) if percent else order.discount_cents
    return [round(discount * line.quantity * line.unit_cents / goods) for line in lines]


def draw_up(order: Order, lines: list[OrderLine], percent: int, number: str, now: str) -> Invoice:
    """Make the invoice of an order; raises Invalid when net and tax do not add up."""
    gross: dict[int, int] = defaultdict(int)
    for line, share in zip(lines, discount_shares(order, lines, percent), strict=True):
        gross[line.tax_rate] += line.quantity * line.unit_cents - share
'''
INVOICE_NEW = '''def draw_up(order: Order, lines: list[OrderLine], number: str, now: str) -> Invoice:
    """Make the invoice of an order; raises Invalid when net and tax do not add up."""
    gross: dict[int, int] = defaultdict(int)
    for line in lines:
        gross[line.tax_rate] += line.quantity * line.unit_cents - line.discount_cents
'''
TEST_CART_SHARES = """def test_shares_add_up_for_a_cart_that_used_to_differ() -> None:
    cart = Cart([CartLine("tea", 1, 333, 7), CartLine("jam", 1, 333, 7), CartLine("mug", 1, 333, 19)], coupon(percent=15))

    assert cart.discount_cents() == 150
    assert cart.discount_shares() == [50, 50, 50]


"""

# Two: charged twice ---------------------------------------------------------------------------------------------

RETRY = (
    "find out what a retry does",
    "store the key of a checkout in a new migration",
    "checkout: the same key gives the same order",
    "a failed payment releases stock and coupon",
    "tests for timeout, retry, failure",
)
PAYMENT_LOG = "\n".join(
    f"2026-01-18T{10 + n // 20:02}:{n * 3 % 60:02}:{n * 11 % 60:02}Z "
    + (
        f"WARNING payments order={10300 + n} capture timed out after 30.0 s; customer retries with a new order"
        if n % 9 == 4
        else f"INFO payments order={10300 + n} captured={2990 + n * 37} provider=card reference=ch_{90210 + n * 13}"
    )
    for n in range(120)
)
MIGRATION = """-- A checkout carries a key of its own; the same key never makes a second order.
ALTER TABLE orders ADD COLUMN checkout_key TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX orders_by_checkout_key ON orders (checkout_key) WHERE checkout_key != '';
"""
PLACE_OLD = """    connection.commit()
    provider.capture(order.id, order.total_cents)
    paid = order.with_status("paid")
"""
PLACE_NEW = """    connection.commit()
    try:
        provider.capture(order.id, order.total_cents)
    except PaymentFailed:
        _undo(connection, order, cart)
        raise
    paid = order.with_status("paid")
"""
UNDO = '''

def _undo(connection: sqlite3.Connection, order: Order, cart: Cart) -> None:
    """Give back what an order that nobody paid had taken: stock, and the use of the coupon."""
    release(connection, [(line.sku, line.quantity) for line in cart.lines])
    if cart.coupon and cart.coupon.uses_left > 0:
        CouponStore(connection).save(cart.coupon)
    OrderStore(connection).save(order.with_status("cancelled"))
    connection.commit()
'''
TEST_RETRY = """

def test_a_failed_payment_gives_back_stock_and_coupon(database: sqlite3.Connection, stocked: None) -> None:
    with pytest.raises(PaymentFailed):
        place(database, Cart([CartLine("tea", 2, 450, 7)]), 1, FakeProvider(fails=1), NOW)

    assert database.execute("SELECT reserved FROM stock_items").fetchone()[0] == 0
    assert database.execute("SELECT status FROM orders").fetchone()[0] == "cancelled"


def test_the_same_key_never_makes_a_second_order(database: sqlite3.Connection, stocked: None) -> None:
    cart, provider = Cart([CartLine("tea", 1, 450, 7)]), FakeProvider()

    first = place(database, cart, 1, provider, NOW, key="k-1")
    again = place(database, cart, 1, provider, NOW, key="k-1")

    assert first == again
    assert len(provider.captured) == 1
"""


def charged_twice(s: Teller) -> None:
    """A payment that timed out is charged again on the retry."""
    s.user(
        "Great. Next: support has three customers who were charged twice. All of them had a timeout at the payment "
        "provider and clicked again. Fix that. The key for a checkout must come from the client (a header, "
        "`Idempotency-Key`), and remember: a new migration, never an edit of 0001."
    )
    s.step(
        read("shop/checkout.py"), read("shop/payments.py"), grep("capture|PaymentFailed"),
        bash("tail -n 120 log/payments.log", "Look at the timeouts", PAYMENT_LOG),
        text="First what a retry does today.",
    )  # fmt: skip
    s.step(
        read("shop/store/orders.py"), read("shop/api/orders.py"), read("shop/api/http.py"), read("shop/database.py"),
        todos(0, *RETRY),
        think="place commits, then captures. On a timeout the order stays open, stock stays promised, the coupon is used. "
        "A second click makes a second order. When the first capture went through after all: two charges.",
    )  # fmt: skip
    s.step(
        read("shop/store/coupons.py"), read("shop/store/payments.py"), read("shop/models/payment.py"),
        read("tests/test_checkout.py"), read("tests/fakes.py"), read("tests/conftest.py"),
    )  # fmt: skip
    s.step(write("migrations/0002_checkout_key.sql", MIGRATION), todos(2, *RETRY))
    s.step(
        edit("shop/checkout.py", PLACE_OLD, PLACE_NEW),
        edit("shop/checkout.py", "    connection.commit()\n    return paid\n", "    connection.commit()\n    return paid\n" + UNDO),
        edit("shop/checkout.py", "from shop.payments import Provider\nfrom shop.reservations import reserve\n",
             "from shop.payments import PaymentFailed, Provider\nfrom shop.reservations import release, reserve\n"),
        edit("shop/checkout.py", "def place(connection: sqlite3.Connection, cart: Cart, customer_id: int, provider: Provider, now: str) -> Order:\n",
             'def place(\n    connection: sqlite3.Connection, cart: Cart, customer_id: int, provider: Provider, now: str, key: str = ""\n) -> Order:\n'),
        edit("shop/checkout.py", '    if not cart.lines:\n', "    if key and (before := _by_key(connection, key)):\n        return before\n    if not cart.lines:\n"),
    )  # fmt: skip
    s.step(
        edit("shop/checkout.py", "\n\ndef _undo(", BY_KEY + "\n\ndef _undo("),
        edit("tests/test_checkout.py", "    with pytest.raises(Conflict):\n        place(database, Cart(), 1, FakeProvider(), NOW)\n",
             "    with pytest.raises(Conflict):\n        place(database, Cart(), 1, FakeProvider(), NOW)\n" + TEST_RETRY),
        edit("tests/test_checkout.py", "from shop.errors import Conflict\n", "from shop.errors import Conflict\nfrom shop.payments import PaymentFailed\n"),
    )  # fmt: skip
    s.step(
        bash("python -m pytest -v", "Run all tests", failing=[
            "test_the_same_key_never_makes_a_second_order\n>       assert first == again\n"
            "E       AssertionError: assert Order(id=1, customer_id=1, status='paid', total_cents=940, ...) == Order(id=2, customer_id=1, ...)\n"
            "E         Differing attributes:\nE         ['id']\n\ntests/test_checkout.py:52: AssertionError"
        ]),
    )  # fmt: skip
    s.step(
        read("shop/checkout.py"), read("shop/store/orders.py", 28, 20),
        text="The key is looked up but never written: `OrderStore.add` writes only the columns of the model. I write it in "
        "the same transaction, right after the order.",
        think="checkout_key is no field of Order, and should not be: it is about the request. An UPDATE in place() is enough.",
    )  # fmt: skip
    s.step(
        edit("shop/checkout.py", "    for line, share in zip(", KEEP_KEY + "    for line, share in zip("),
        bash("python -m pytest -v", "Run all tests"),
    )
    s.step(
        bash("git diff", "Review"), bash("git commit -qam 'Never charge a checkout twice'", "Commit"), todos(5, *RETRY)
    )
    s.step(
        text="Done. `place` takes a key; the same key gives the same order back and charges nothing. When the provider "
        "fails or times out, stock and coupon go back and the order is cancelled. Two things are still open: the handler for "
        "POST /api/orders does not pass the header yet, because you said the public API stays as it is unless you ask. "
        "And a key whose order was cancelled gives the cancelled order back: the client must take a new key then. Shall I "
        "pass the header?"
    )


BY_KEY = '''

def _by_key(connection: sqlite3.Connection, key: str) -> Order | None:
    """The order that this checkout made before."""
    row = connection.execute("SELECT id FROM orders WHERE checkout_key = ?", (key,)).fetchone()
    return OrderStore(connection).get(row[0]) if row else None
'''
KEEP_KEY = '    connection.execute("UPDATE orders SET checkout_key = ? WHERE id = ?", (key, order.id))\n'

# Three: the last piece ------------------------------------------------------------------------------------------

RESERVE_OLD = """        for item in store.by_sku(sku):
            free = item.on_hand - item.reserved
            if free >= quantity:
                store.save(item.with_reserved(item.reserved + quantity))
                break
        else:
"""
RESERVE_NEW = """        if not any(_take(connection, item.id, quantity) for item in store.by_sku(sku)):
"""
TAKE = '''

def _take(connection: sqlite3.Connection, item_id: int, quantity: int) -> bool:
    """Promise pieces of one shelf if they are free; checked and written in one statement, so nobody comes between."""
    query = "UPDATE stock_items SET reserved = reserved + ? WHERE id = ? AND on_hand - reserved >= ?"
    return connection.execute(query, (quantity, item_id, quantity)).rowcount == 1
'''


def race_output(runs: int) -> str:
    """The output of a test that is run many times."""
    rng = random.Random(5)
    lines = []
    for number in range(1, runs + 1):
        bad = rng.random() < 0.14
        took = rng.uniform(0.02, 0.4)
        lines.append(
            f"run {number:>3}: tests/test_reservations.py::test_two_customers_cannot_both_get_the_last_piece "
            + (
                f"FAILED ({took:.2f}s)  assert ['sold', 'sold'] == ['sold', 'sold out']"
                if bad
                else f"PASSED ({took:.2f}s)"
            )
        )
    return "\n".join(lines)


def last_piece(s: Teller) -> None:
    """A test that fails now and then."""
    s.user(
        "Yes, pass the header: that one I ask for. Then the flaky test: "
        "test_two_customers_cannot_both_get_the_last_piece fails in CI about once in ten runs. I don't want a retry or a "
        "sleep in the test; if it fails, the code is wrong. And never lower the number of threads to make it pass."
    )
    s.step(
        read("shop/api/orders.py"),
        grep("def (create|place)"),
        read("shop/reservations.py"),
        read("tests/test_reservations.py"),
    )
    s.step(
        edit("shop/api/orders.py", "from shop.errors import Invalid\n", "from shop.checkout import place\nfrom shop.errors import Invalid\n"),
        edit("shop/api/orders.py", '@staff_only\ndef delete(', CHECKOUT_HANDLER + "@staff_only\ndef delete("),
        bash("for i in $(seq 90); do python -m pytest -q tests/test_reservations.py; done", "Run the flaky test 90 times", race_output(90)),
        text="The header first, then I reproduce the race.",
    )  # fmt: skip
    s.step(
        read("shop/store/stock_items.py"), read("shop/models/stock_item.py"), grep("reserved"),
        think="reserve reads on_hand - reserved, then writes in another statement. SQLite's deferred transaction takes the "
        "write lock only at the UPDATE; both read 0. One conditional UPDATE closes it, for several processes too.",
    )  # fmt: skip
    s.step(
        edit("shop/reservations.py", RESERVE_OLD, RESERVE_NEW),
        edit("shop/reservations.py", "\n\ndef release(", TAKE + "\n\ndef release("),
        text="Checked and written in two statements: between them another customer can take the piece. One conditional "
        "UPDATE does both.",
    )
    s.step(
        bash("for i in $(seq 300); do python -m pytest -q tests/test_reservations.py || break; done", "Run it 300 times",
             "\n".join(f"run {n:>3}: 2 passed in 0.{10 + n * 7 % 30}s" for n in range(1, 301))),
        bash("python -m pytest -v", "Run all tests"),
    )  # fmt: skip
    s.step(bash("git diff", "Review"), bash("git commit -qam 'Promise stock in one statement'", "Commit"))
    s.step(
        text="The header is passed (`Idempotency-Key`, optional, at most 64 characters). The race: `reserve` read what is "
        "free and wrote later; two customers could both read 1. Now one UPDATE checks and writes. 300 runs, no failure; "
        "before it was 11 of 90. The test is as it was."
    )


CHECKOUT_HANDLER = '''def checkout(request: Request) -> Response:
    """POST {PREFIX}/checkout; the header Idempotency-Key (at most 64 characters) makes a retry safe."""
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > 64:
        raise Invalid("Idempotency-Key is too long", len(key))
    order = place(request.connection, request.cart(), request.customer_id, request.provider, request.now, key)
    return json_response(_public(order), status=201)


'''

# Four: the slow list --------------------------------------------------------------------------------------------

SLOW = (
    "count the queries of one page",
    "one query for the lines of a page, not one per order",
    "indexes in a new migration",
    "a test that counts queries",
)
INDEXES = """-- The lists of staff search by these.
CREATE INDEX order_lines_by_order ON order_lines (order_id);
CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE INDEX payments_by_order ON payments (order_id);
CREATE INDEX shipments_by_order ON shipments (order_id);
CREATE INDEX stock_items_by_sku ON stock_items (sku);
"""
BY_ORDERS = '''
    def by_order_ids(self, order_ids: list[int]) -> dict[int, list[OrderLine]]:
        """The lines of several orders in one query: order -> lines, every order that was asked for is there."""
        marks = ", ".join("?" for _ in order_ids)
        rows = self.connection.execute(f"SELECT * FROM {TABLE} WHERE order_id IN ({marks}) ORDER BY id", order_ids)
        found: dict[int, list[OrderLine]] = {order_id: [] for order_id in order_ids}
        for row in rows.fetchall():
            line = OrderLine.from_row(dict(row))
            found[line.order_id].append(line)
        return found
'''
TEST_QUERIES = """

def test_the_lines_of_many_orders_take_one_query(database: sqlite3.Connection) -> None:
    store = OrderLineStore(database)
    for order_id in (1, 1, 2):
        store.add(sample(order_id=order_id))
    queries: list[str] = []
    database.set_trace_callback(queries.append)

    found = store.by_order_ids([1, 2, 3])

    assert [len(lines) for lines in found.values()] == [2, 1, 0]
    assert len(queries) == 1
"""


def sql_log(orders: int) -> str:
    """The queries of one page of the list, with the time of each in milliseconds."""
    rng = random.Random(11)
    lines = [f"{rng.uniform(3, 5):8.2f} ms  SELECT * FROM orders WHERE status = 'paid' ORDER BY id DESC LIMIT {orders}"]
    for number in range(orders):
        order = 20417 - number
        lines.append(
            f"{rng.uniform(21, 38):8.2f} ms  SELECT * FROM order_lines WHERE order_id = {order} ORDER BY id DESC LIMIT 100"
        )
        lines.append(
            f"{rng.uniform(11, 19):8.2f} ms  SELECT * FROM payments WHERE order_id = {order} ORDER BY id DESC LIMIT 100"
        )
        lines.append(
            f"{rng.uniform(9, 14):8.2f} ms  SELECT * FROM shipments WHERE order_id = {order} ORDER BY id DESC LIMIT 100"
        )
    return "\n".join(lines)


def plans() -> str:
    """What SQLite does for the lists: reads whole tables."""
    lines = []
    for entity in ENTITIES:
        for name, _, _ in entity.fields[:4]:
            lines += [
                f"-- SELECT * FROM {entity.plural} WHERE {name} = ? ORDER BY id DESC LIMIT 100",
                f"   SCAN {entity.plural}",
            ]
    return "\n".join(lines)


def slow_list(s: Teller) -> None:
    """Many queries where one would do."""
    s.user(
        "The order list in the back office takes 8 seconds since we have 20,000 orders. Find out why, with figures before "
        "and after. I prefer few, boring indexes over caching. Always show me the query plan before you add an index."
    )
    s.step(
        bash("SHOP_TRACE=1 python -m shop.bench list --orders 100", "Trace the queries of one page", sql_log(100)),
        read("shop/store/orders.py"), read("shop/store/order_lines.py"), todos(0, *SLOW),
        text="I trace one page first.",
    )  # fmt: skip
    s.step(
        *(read(f"shop/store/{entity.plural}.py") for entity in ENTITIES[:2] + ENTITIES[4:8]),
        text="301 queries for 100 orders: one for the page, then three for each order, 20 to 40 ms each. Both are wrong: the "
        "number, and the time of each. I look at how the stores search.",
    )
    s.step(*(read(f"shop/store/{entity.plural}.py") for entity in ENTITIES[8:]))
    s.step(
        bash("python -m shop.bench plans", "Query plans of all searches", plans()),
        text="The plans, before any index:",
        think="Every by_ method scans. Only those on the path of the list and of reserve matter; indexes cost writes.",
    )
    s.step(
        write("migrations/0003_indexes.sql", INDEXES),
        edit("shop/store/order_lines.py", "\n    def save(self, item: OrderLine)", BY_ORDERS + "\n    def save(self, item: OrderLine)"),
        edit("tests/store/test_order_lines.py", "\ndef test_what_was_removed", TEST_QUERIES.lstrip("\n") + "\n\ndef test_what_was_removed"),
        todos(3, *SLOW),
        text="All of them scan. I index the five that the list and the reservation use, no others.",
    )  # fmt: skip
    s.step(
        bash("python -m pytest -v", "Run all tests"),
        bash("SHOP_TRACE=1 python -m shop.bench list --orders 100 | tail -5", "Measure again",
             "    0.31 ms  SELECT * FROM orders WHERE status = 'paid' ORDER BY id DESC LIMIT 100\n    0.92 ms  SELECT * FROM order_lines "
             "WHERE order_id IN (20417, 20416, 20415, ...) ORDER BY id\n    0.40 ms  SELECT * FROM payments WHERE order_id IN (...)\n"
             "    0.37 ms  SELECT * FROM shipments WHERE order_id IN (...)\n4 queries, 2.00 ms"),
    )  # fmt: skip
    s.step(
        bash("git diff --stat", "Review"),
        bash("git commit -qam 'List orders with four queries'", "Commit"),
        todos(4, *SLOW),
    )
    s.step(
        text="Before: 301 queries, 5.6 s in SQLite for a page of 100. After: 4 queries, 2 ms. Five indexes in "
        "migrations/0003_indexes.sql (order_lines, payments, shipments by order; orders by customer; stock_items by sku); "
        "the plans above show that each was a scan of the table. `OrderLineStore.by_order_ids` has a test that counts "
        "its queries. Nothing is cached."
    )


# Five: what everybody may see -----------------------------------------------------------------------------------

PRIVATE = {
    "customers": ("email", "street", "postcode", "newsletter"),
    "payments": ("reference",),
    "stock_items": ("reserved", "reorder_at", "counted_at"),
    "suppliers": ("email", "lead_days", "minimum_cents"),
    "refunds": ("approved_by",),
    "coupons": ("uses_left",),
}
AUDIT = (
    "read every answer of /api",
    "decide what is private",
    "take it out",
    "a test that fails on new fields",
    "tell Ada",
)


def public_answers(s: Teller) -> None:
    """What the API shows to strangers."""
    s.user(
        "Now something urgent: a customer found that /api/customers/<id> answers with somebody's address, without a login. "
        "Go through ALL endpoints and tell me what strangers can see. Take out what is private. For this one you may "
        "change the public JSON, but never rename a field that stays."
    )
    apis = [f"shop/api/{entity.plural}.py" for entity in ENTITIES]
    s.step(
        grep("def _public|staff_only"), *(read(path) for path in apis[:4]), todos(0, *AUDIT),
        text="`_public` of each file decides. I read all twelve.",
    )  # fmt: skip
    s.step(*(read(path) for path in apis[4:8]))
    s.step(*(read(path) for path in apis[8:]))
    s.step(
        *(read(f"shop/models/{entity.name}.py") for entity in ENTITIES if entity.plural in PRIVATE),
        text="Everything is public everywhere: `_public` copies all fields. For what is meant to be private I look at the models.",
    )
    s.step(
        *(edit(f"shop/api/{name}.py", f'        "{field}": item.{field},\n', "") for name, fields in PRIVATE.items() for field in fields),
        todos(2, *AUDIT),
    )  # fmt: skip
    s.step(
        *(read(f"tests/store/test_{entity.plural}.py") for entity in ENTITIES[:6]),
        text="Is there any test of the answers? The store tests may build on them.",
    )
    s.step(*(read(f"tests/store/test_{entity.plural}.py") for entity in ENTITIES[6:]))
    s.step(write("tests/test_public.py", TEST_PUBLIC), bash("python -m pytest -v", "Run all tests"), todos(4, *AUDIT))
    s.step(bash("git diff", "Review"), bash("git commit -qam 'Show strangers only what is meant for them'", "Commit"))
    s.step(
        text="What strangers could see, and cannot any more:\n\n| endpoint | taken out |\n|---|---|\n"
        + "\n".join(f"| /api/{name.replace('_', '-')} | {', '.join(fields)} |" for name, fields in PRIVATE.items())
        + "\n\nNo field was renamed. `tests/test_public.py` lists what each endpoint may show: a new field fails it until "
        "somebody decides. One thing needs you: names of customers are still shown, because reviews use them."
    )


TEST_PUBLIC = '''"""What strangers may see.  A field that is not listed here is private until somebody decides otherwise."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

API = Path(__file__).parent.parent / "shop" / "api"
PRIVATE = {
    "customers": {"email", "street", "postcode", "newsletter"},
    "payments": {"reference"},
    "stock_items": {"reserved", "reorder_at", "counted_at"},
    "suppliers": {"email", "lead_days", "minimum_cents"},
    "refunds": {"approved_by"},
    "coupons": {"uses_left"},
}


@pytest.mark.parametrize("name", sorted(PRIVATE))
def test_private_fields_are_not_shown(name: str) -> None:
    public = (API / f"{name}.py").read_text(encoding="utf-8").partition("def _public")[2]

    assert not PRIVATE[name] & set(re.findall(r'"(\\w+)": item', public))
'''

# Six: refunds, unfinished --------------------------------------------------------------------------------------

REFUND = (
    "read how a refund is worked out",
    "tests: a refund gives back what the line cost, with its share of the discount",
    "refund_lines uses order_lines.discount_cents",
    "two partial refunds never give back more than was paid",
    "credit note shows tax by rate",
)
TEST_REFUND = """from __future__ import annotations

import sqlite3
from pathlib import Path

from shop.cart import Cart, CartLine
from shop.checkout import place
from shop.models.coupon import Coupon
from shop.refunds import refund_lines
from shop.store.order_lines import OrderLineStore
from tests.fakes import FakeProvider, stock

NOW = "2026-01-19T12:00:00Z"


def test_a_line_gives_back_what_it_cost(path: Path, database: sqlite3.Connection) -> None:
    for sku in ("tea", "jam", "mug"):
        stock(path, sku, 5)
    lines = [CartLine(sku, 1, 333, 7) for sku in ("tea", "jam", "mug")]
    cart = Cart(lines, Coupon(1, "SPRING", 10, 0, 0, "2026-12-31", -1))
    order = place(database, cart, 1, FakeProvider(), NOW)
    tea = next(line for line in OrderLineStore(database).by_order_id(order.id) if line.sku == "tea")

    refund = refund_lines(database, order.id, [tea.id], 1, "ada", "broken", NOW)

    assert refund.amount_cents == 333 - tea.discount_cents
"""


def refunds(s: Teller) -> None:
    """The last request, half done."""
    s.user(
        "Good. The names stay. Last thing for today: partial refunds. They must use the same shares of the discount as "
        "the invoice, and two partial refunds must never give back more than was paid. Write the tests first. Postage is "
        "never refunded unless the whole order goes back."
    )
    s.step(
        read("shop/refunds.py"), read("shop/store/refunds.py"), read("shop/models/refund.py"), grep("refund"), todos(0, *REFUND),
        think="refund_lines multiplies by (1 - discount/goods) and forgets that discount is cents, not a share: "
        "1 - 100/999 works by accident as a ratio, but rounds the whole, not the lines.",
    )  # fmt: skip
    s.step(
        read("shop/money.py"), read("shop/invoicing.py"), read("shop/store/order_lines.py"), read("shop/cart.py"),
        read("shop/checkout.py"), read("shop/models/order_line.py"), read("tests/fakes.py"), read("tests/conftest.py"),
        text="`refund_lines` works out the discount from the total again, the same mistake as before. The shares are in "
        "`order_lines.discount_cents` now.",
    )  # fmt: skip
    s.step(write("tests/test_partial_refunds.py", TEST_REFUND), todos(1, *REFUND))
    s.step(
        bash("python -m pytest -v", "The new test must fail first", failing=[
            "test_a_line_gives_back_what_it_cost\n>       assert refund.amount_cents == 333 - tea.discount_cents\n"
            "E       AssertionError: assert 300 == (333 - 34)\nE        +  where 300 = Refund(id=1, order_id=1, payment_id=1, amount_cents=300, "
            "reason='broken', approved_by='ada', created_at='2026-01-19T12:00:00Z').amount_cents\n\ntests/test_partial_refunds.py:26: AssertionError"
        ]),
        todos(2, *REFUND),
    )  # fmt: skip
    s.step(
        text="The first test fails as it should: 300 instead of 299, the share of the tea line is 34, because the odd cent of 100 goes to the first of three equal lines. "
        "Next I change `refund_lines` in shop/refunds.py to `unit_cents * quantity - discount_cents` per line, then the test "
        "for two partial refunds (sum of RefundStore.by_order_id must not exceed what was paid), then the credit note."
    )
