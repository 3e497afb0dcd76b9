"""The made-up repository that the example session works on: a small web shop, grown from a table of its entities.

Files are plain text in a dict, path -> content, so that reading, searching and editing them gives the session real
results.  The bug is in `cart.py` and `invoice.py`: both split a discount over the lines, and round differently.
"""

from __future__ import annotations

from dataclasses import dataclass

Field = tuple[str, str, str]
"""Name, type, what it is."""


@dataclass(frozen=True)
class Entity:
    """One thing that the shop knows, and what is true of it."""

    name: str
    about: str
    fields: tuple[Field, ...]
    rules: tuple[tuple[str, str, str], ...]
    """Condition that must hold, what is said when it does not, and values that break it."""

    @property
    def cls(self) -> str:
        """Name of the class."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def plural(self) -> str:
        """Name of the table and of the files."""
        return self.name[:-1] + "ies" if self.name.endswith("y") else self.name + "s"


ENTITIES = (
    Entity(
        "product",
        "Something that can be bought.  Prices are what the shelf says, tax included.",
        (("sku", "str", "what the warehouse calls it"), ("title", "str", "shown to customers"),
         ("price_cents", "int", "price of one piece, tax included"), ("tax_rate", "int", "per cent"),
         ("weight_grams", "int", "for the parcel"), ("active", "bool", "whether it can be bought")),
        (("self.price_cents >= 0", "a price cannot be negative", "price_cents=-1"), ("self.tax_rate in (0, 7, 19)", "unknown tax rate", "tax_rate=16"),
         ("self.weight_grams > 0", "a product weighs something", "weight_grams=0")),
    ),
    Entity(
        "customer",
        "Somebody with an account.  Guests have none.",
        (("email", "str", "also the name of the account"), ("name", "str", "as it stands on the parcel"),
         ("street", "str", "first address line"), ("postcode", "str", "checked by country"),
         ("country", "str", "two letters"), ("newsletter", "bool", "agreed to be written to")),
        (("'@' in self.email", "an address needs an @", "email='x'"), ("len(self.country) == 2", "countries have two letters", "country='DEU'"),
         ("self.postcode.strip()", "a postcode is needed", "postcode=' '")),
    ),
    Entity(
        "order",
        "What somebody bought.  Never changed after payment, only cancelled or refunded.",
        (("customer_id", "int", "0 for guests"), ("status", "str", "open, paid, shipped, cancelled, refunded"),
         ("total_cents", "int", "what is to be paid"), ("discount_cents", "int", "taken off by coupons"),
         ("shipping_cents", "int", "postage"), ("placed_at", "str", "ISO time, UTC")),
        (("self.status in STATUSES", "unknown status", "status='lost'"), ("self.total_cents >= 0", "a total cannot be negative", "total_cents=-1"),
         ("self.discount_cents >= 0", "a discount cannot be negative", "discount_cents=-1")),
    ),
    Entity(
        "order_line",
        "One product of an order, with the price that held when it was bought.",
        (("order_id", "int", "the order it is part of"), ("sku", "str", "the product"), ("quantity", "int", "pieces"),
         ("unit_cents", "int", "price of one piece then"), ("discount_cents", "int", "its share of the discount"),
         ("tax_rate", "int", "per cent, as it was then")),
        (("self.quantity > 0", "a line needs pieces", "quantity=0"), ("self.unit_cents >= 0", "a price cannot be negative", "unit_cents=-1")),
    ),
    Entity(
        "coupon",
        "A code that takes something off, once per customer unless it says otherwise.",
        (("code", "str", "upper case"), ("percent", "int", "0 when an amount is given"),
         ("amount_cents", "int", "0 when a share is given"), ("minimum_cents", "int", "smallest cart that it takes"),
         ("expires_at", "str", "ISO date"), ("uses_left", "int", "-1 for unlimited")),
        (("0 <= self.percent <= 100", "a share is between 0 and 100", "percent=101"),
         ("bool(self.percent) != bool(self.amount_cents)", "either a share or an amount", "percent=10, amount_cents=5"),
         ("self.code == self.code.upper()", "codes are upper case", "code='spring'")),
    ),
    Entity(
        "stock_item",
        "How many pieces of a product are in a warehouse, and how many of them are promised.",
        (("sku", "str", "the product"), ("warehouse", "str", "where"), ("on_hand", "int", "pieces on the shelf"),
         ("reserved", "int", "promised to open orders"), ("reorder_at", "int", "order more below this"),
         ("counted_at", "str", "last stocktaking")),
        (("self.on_hand >= 0", "a shelf cannot hold less than nothing", "on_hand=-1"),
         ("0 <= self.reserved <= self.on_hand", "more promised than there is", "on_hand=1, reserved=2")),
    ),
    Entity(
        "invoice",
        "The legal side of an order: numbered without gaps, never changed.",
        (("number", "str", "year and running number"), ("order_id", "int", "the order"),
         ("net_cents", "int", "without tax"), ("tax_cents", "int", "tax"), ("total_cents", "int", "to be paid"),
         ("issued_at", "str", "ISO time, UTC")),
        (("self.net_cents + self.tax_cents == self.total_cents", "net and tax do not add up", "tax_cents=20"),
         ("self.number", "an invoice needs a number", "number=''")),
    ),
    Entity(
        "payment",
        "Money that came in, as the provider reported it.",
        (("order_id", "int", "the order"), ("provider", "str", "card, bank or wallet"),
         ("reference", "str", "the provider's own id"), ("amount_cents", "int", "what was paid"),
         ("state", "str", "pending, captured, failed, returned"), ("received_at", "str", "ISO time, UTC")),
        (("self.amount_cents > 0", "a payment is more than nothing", "amount_cents=0"), ("self.reference", "a reference is needed", "reference=''")),
    ),
    Entity(
        "refund",
        "Money that goes back, for some lines or for all of an order.",
        (("order_id", "int", "the order"), ("payment_id", "int", "where the money goes back to"),
         ("amount_cents", "int", "what goes back"), ("reason", "str", "shown on the credit note"),
         ("approved_by", "str", "staff member"), ("created_at", "str", "ISO time, UTC")),
        (("self.amount_cents > 0", "a refund is more than nothing", "amount_cents=0"), ("self.reason.strip()", "a reason is needed", "reason=' '")),
    ),
    Entity(
        "shipment",
        "A parcel on its way.",
        (("order_id", "int", "the order"), ("carrier", "str", "who brings it"), ("tracking", "str", "their number"),
         ("weight_grams", "int", "of the parcel"), ("sent_at", "str", "ISO time, UTC"),
         ("delivered_at", "str", "empty while it is on its way")),
        (("self.weight_grams > 0", "a parcel weighs something", "weight_grams=0"), ("self.tracking", "a tracking number is needed", "tracking=''")),
    ),
    Entity(
        "review",
        "What a customer says about a product that they bought.",
        (("sku", "str", "the product"), ("customer_id", "int", "who says it"), ("stars", "int", "1 to 5"),
         ("text", "str", "may be empty"), ("visible", "bool", "checked by staff"), ("written_at", "str", "ISO time")),
        (("1 <= self.stars <= 5", "between one and five stars", "stars=6"), ("len(self.text) <= 4000", "the text is too long", "text='x' * 4001")),
    ),
    Entity(
        "supplier",
        "Where products come from.",
        (("name", "str", "of the company"), ("email", "str", "for orders"), ("lead_days", "int", "until delivery"),
         ("minimum_cents", "int", "smallest order"), ("currency", "str", "three letters"), ("active", "bool", "in use")),
        (("self.lead_days >= 0", "nothing arrives before it is ordered", "lead_days=-1"), ("len(self.currency) == 3", "three letters", "currency='EURO'")),
    ),
)  # fmt: skip

TYPE_OF_COLUMN = {"str": "TEXT", "int": "INTEGER", "bool": "INTEGER"}
SAMPLE = {"str": "'x'", "int": "1", "bool": "True"}
SAMPLE_OF = {
    "amount_cents": "0", "code": "'SPRING'", "country": "'DE'", "currency": "'EUR'", "email": "'ada@example.com'",
    "net_cents": "100", "status": "'open'", "tax_cents": "19", "tax_rate": "19", "total_cents": "119",
}  # fmt: skip
"""Sample values that the rules ask for."""


def repository() -> dict[str, str]:
    """All files of the shop, as they are before the session."""
    files = {
        "README.md": README,
        "Makefile": MAKEFILE,
        "pyproject.toml": PYPROJECT,
        "shop/__init__.py": "",
        "shop/errors.py": ERRORS,
        "shop/database.py": DATABASE,
        "shop/payments.py": PAYMENTS,
        "shop/api/http.py": HTTP,
        "tests/conftest.py": CONFTEST,
        "tests/fakes.py": FAKES,
        "shop/cart.py": CART,
        "shop/invoicing.py": INVOICING,
        "shop/checkout.py": CHECKOUT,
        "shop/reservations.py": RESERVATIONS,
        "shop/refunds.py": REFUNDS,
        "tests/test_cart.py": TEST_CART,
        "tests/test_checkout.py": TEST_CHECKOUT,
        "tests/test_reservations.py": TEST_RESERVATIONS,
    }
    for entity in ENTITIES:
        files[f"shop/models/{entity.name}.py"] = _model(entity)
        files[f"shop/store/{entity.plural}.py"] = _store(entity)
        files[f"shop/api/{entity.plural}.py"] = _api(entity)
        files[f"tests/store/test_{entity.plural}.py"] = _tests(entity)
    files["migrations/0001_first.sql"] = "\n\n".join(_table(entity) for entity in ENTITIES) + "\n"
    return dict(sorted(files.items()))


def _model(entity: Entity) -> str:
    lines = [f'"""{entity.about}"""', "", "from __future__ import annotations", ""]
    lines += [
        "from dataclasses import dataclass, replace",
        "from typing import Any",
        "",
        "from shop.errors import Invalid",
        "",
    ]
    if entity.name == "order":
        lines += ['STATUSES = ("open", "paid", "shipped", "cancelled", "refunded")', ""]
    lines += ["", "@dataclass(frozen=True)", f"class {entity.cls}:", f'    """{entity.about}"""', "", "    id: int"]
    lines += [f"    {name}: {kind}  # {about}" for name, kind, about in entity.fields]
    lines += ["", "    def __post_init__(self) -> None:"]
    for condition, message, _ in entity.rules:
        lines += [f"        if not ({condition}):", f"            raise Invalid({message!r}, self)"]
    lines += ["", "    @classmethod", f'    def from_row(cls, row: dict[str, Any]) -> "{entity.cls}":']
    lines += [
        '        """Build it from a database row; columns that are not ours are left alone."""',
        "        return cls(",
    ]
    lines += ['            id=row["id"],']
    for name, kind, _ in entity.fields:
        value = f'bool(row["{name}"])' if kind == "bool" else f'row["{name}"]'
        lines.append(f"            {name}={value},")
    lines += [
        "        )",
        "",
        "    def to_row(self) -> dict[str, Any]:",
        '        """Give the columns that the store writes."""',
    ]
    lines += ["        return {"]
    lines += [
        f'            "{name}": {"int(self." + name + ")" if kind == "bool" else "self." + name},'
        for name, kind, _ in entity.fields
    ]
    lines += ["        }"]
    for name, kind, about in entity.fields:
        if kind != "bool":
            lines += ["", f'    def with_{name}(self, {name}: {kind}) -> "{entity.cls}":']
            lines += [
                f'        """A copy with another value for: {about}."""',
                f"        return replace(self, {name}={name})",
            ]
    return "\n".join(lines) + "\n"


def _store(entity: Entity) -> str:
    columns = [name for name, _, _ in entity.fields]
    lines = [
        f'"""Where {entity.plural.replace("_", " ")} are kept.  One connection per request; the caller commits."""',
        "",
    ]
    lines += [
        "from __future__ import annotations",
        "",
        "import sqlite3",
        "",
        "from shop.errors import Conflict, Missing",
    ]
    lines += [f"from shop.models.{entity.name} import {entity.cls}", "", f'TABLE = "{entity.plural}"']
    lines += [f"COLUMNS = {tuple(columns)!r}", "", "", f"class {entity.cls}Store:"]
    lines += [f'    """Reads and writes {entity.plural.replace("_", " ")}."""', ""]
    lines += ["    def __init__(self, connection: sqlite3.Connection) -> None:", "        self.connection = connection"]
    lines += ["        self.connection.row_factory = sqlite3.Row", ""]
    lines += [f"    def get(self, id: int) -> {entity.cls}:", '        """Fetch one; raises Missing."""']
    lines += ['        row = self.connection.execute(f"SELECT * FROM {TABLE} WHERE id = ?", (id,)).fetchone()']
    lines += [
        "        if row is None:",
        f'            raise Missing("{entity.name}", id)',
        f"        return {entity.cls}.from_row(dict(row))",
        "",
    ]
    lines += [
        f"    def add(self, item: {entity.cls}) -> {entity.cls}:",
        '        """Insert one and give it back with its new id."""',
    ]
    lines += ["        row = item.to_row()", '        marks = ", ".join("?" for _ in COLUMNS)', "        try:"]
    lines += [
        "            cursor = self.connection.execute(f\"INSERT INTO {TABLE} ({', '.join(COLUMNS)}) VALUES ({marks})\","
    ]
    lines += ["                                             [row[column] for column in COLUMNS])"]
    lines += [
        "        except sqlite3.IntegrityError as error:",
        f'            raise Conflict("{entity.name}", str(error)) from None',
    ]
    lines += ["        return self.get(cursor.lastrowid)", ""]
    lines += [
        f"    def save(self, item: {entity.cls}) -> None:",
        '        """Write all columns of one that is there; raises Missing."""',
    ]
    lines += ['        assignments = ", ".join(f"{column} = ?" for column in COLUMNS)', "        row = item.to_row()"]
    lines += ["        values = [row[column] for column in COLUMNS]"]
    lines += [
        '        cursor = self.connection.execute(f"UPDATE {TABLE} SET {assignments} WHERE id = ?", [*values, item.id])'
    ]
    lines += ["        if cursor.rowcount == 0:", f'            raise Missing("{entity.name}", item.id)', ""]
    lines += ["    def remove(self, id: int) -> None:", '        """Delete one; raises Missing."""']
    lines += ['        if self.connection.execute(f"DELETE FROM {TABLE} WHERE id = ?", (id,)).rowcount == 0:']
    lines += [f'            raise Missing("{entity.name}", id)']
    for name, kind, about in entity.fields[:4]:
        lines += ["", f"    def by_{name}(self, {name}: {kind}, limit: int = 100) -> list[{entity.cls}]:"]
        lines += [f'        """All with this value ({about}), the newest first."""']
        lines += [f'        query = f"SELECT * FROM {{TABLE}} WHERE {name} = ? ORDER BY id DESC LIMIT ?"']
        lines += [f"        rows = self.connection.execute(query, ({name}, limit)).fetchall()"]
        lines += [f"        return [{entity.cls}.from_row(dict(row)) for row in rows]"]
    return "\n".join(lines) + "\n"


def _api(entity: Entity) -> str:
    lines = [
        f'"""The HTTP side of {entity.plural.replace("_", " ")}: parses, checks who asks, calls the store, answers JSON."""',
        "",
    ]
    lines += [
        "from __future__ import annotations",
        "",
        "from shop.api.http import Request, Response, json_response, staff_only",
    ]
    lines += ["from shop.errors import Invalid", f"from shop.models.{entity.name} import {entity.cls}"]
    lines += [
        f"from shop.store.{entity.plural} import {entity.cls}Store",
        "",
        f'PREFIX = "/api/{entity.plural.replace("_", "-")}"',
        "",
        "",
    ]
    lines += ["def show(request: Request, id: int) -> Response:", '    """GET {PREFIX}/<id>"""']
    lines += [
        f"    item = {entity.cls}Store(request.connection).get(id)",
        "    return json_response(_public(item))",
        "",
        "",
    ]
    lines += [
        "@staff_only",
        "def create(request: Request) -> Response:",
        '    """POST {PREFIX}"""',
        "    body = request.json()",
    ]
    for name, kind, _ in entity.fields:
        lines += [
            f'    if not isinstance(body.get("{name}"), {kind}):',
            f'        raise Invalid("{name} must be {kind}", body)',
        ]
    lines += [
        f"    item = {entity.cls}(id=0, " + ", ".join(f'{name}=body["{name}"]' for name, _, _ in entity.fields) + ")"
    ]
    lines += [f"    stored = {entity.cls}Store(request.connection).add(item)", "    request.connection.commit()"]
    lines += ["    return json_response(_public(stored), status=201)", "", ""]
    lines += ["@staff_only", "def delete(request: Request, id: int) -> Response:", '    """DELETE {PREFIX}/<id>"""']
    lines += [
        f"    {entity.cls}Store(request.connection).remove(id)",
        "    request.connection.commit()",
        "    return Response(status=204)",
        "",
        "",
    ]
    lines += [
        f"def _public(item: {entity.cls}) -> dict[str, object]:",
        '    """What everybody may see."""',
        "    return {",
        '        "id": item.id,',
    ]
    lines += [f'        "{name}": item.{name},' for name, _, _ in entity.fields] + ["    }"]
    return "\n".join(lines) + "\n"


def _tests(entity: Entity) -> str:
    values = {name: SAMPLE_OF.get(name, SAMPLE[kind]) for name, kind, _ in entity.fields}
    if entity.name in ("payment", "refund"):
        values["amount_cents"] = "500"
    sample = ", ".join(f"{name}={value}" for name, value in values.items())
    lines = ["from __future__ import annotations", "", "import sqlite3", "", "import pytest", ""]
    lines += ["from shop.errors import Invalid, Missing", f"from shop.models.{entity.name} import {entity.cls}"]
    lines += [f"from shop.store.{entity.plural} import {entity.cls}Store", "", "", "@pytest.fixture"]
    lines += [
        f"def store(database: sqlite3.Connection) -> {entity.cls}Store:",
        f"    return {entity.cls}Store(database)",
        "",
        "",
    ]
    lines += [f"def sample(**changes: object) -> {entity.cls}:", f"    values: dict[str, object] = dict({sample})"]
    lines += [f"    return {entity.cls}(id=0, **{{**values, **changes}})", ""]
    names = ["what_was_added_can_be_fetched", "what_was_removed_is_missing", "saving_what_is_not_there_is_refused"]
    bodies = [
        ["    item = store.add(sample())", "", "    assert store.get(item.id) == item"],
        [
            "    item = store.add(sample())",
            "    store.remove(item.id)",
            "",
            "    with pytest.raises(Missing):",
            "        store.get(item.id)",
        ],
        ["    with pytest.raises(Missing):", "        store.save(sample())"],
    ]
    for name, body in zip(names, bodies, strict=True):
        lines += ["", f"def test_{name}(store: {entity.cls}Store) -> None:", *body, ""]
    for name, _, _ in entity.fields[:4]:
        lines += [
            "",
            f"def test_it_is_found_by_{name}(store: {entity.cls}Store) -> None:",
            "    item = store.add(sample())",
        ]
        lines += ["", f"    assert store.by_{name}(item.{name}) == [item]", ""]
    for number, (condition, message, breaking) in enumerate(entity.rules, 1):
        lines += ["", f"def test_rule_{number}_holds() -> None:", f"    # {condition}: {message}"]
        lines += ["    with pytest.raises(Invalid):", f"        sample({breaking})", ""]
    return "\n".join(lines)


def _table(entity: Entity) -> str:
    columns = [f"    {name} {TYPE_OF_COLUMN[kind]} NOT NULL, -- {about}" for name, kind, about in entity.fields]
    return "\n".join(
        [f"CREATE TABLE {entity.plural} (", "    id INTEGER PRIMARY KEY,", *columns, "    CHECK (id > 0)", ");"]
    )


README = """# cornershop

A small web shop: catalogue, cart, checkout, invoices, stock.  Python 3.11, SQLite, no framework.

    make test       the tests
    make run        http://127.0.0.1:8000

Money is whole cents, always.  A figure in cents ends in `_cents`.  Prices hold the tax.
Migrations are never edited once they are merged: write a new one.
"""
MAKEFILE = """test:
\tpython -m pytest -q

run:
\tpython -m shop

.PHONY: test run
"""
PYPROJECT = """[project]
name = "cornershop"
version = "1.8.2"
requires-python = ">=3.11"
dependencies = []

[tool.pytest.ini_options]
testpaths = ["tests"]
"""
CART = '''"""The cart: lines, coupons, totals.  This is what a customer sees before they pay."""

from __future__ import annotations

from dataclasses import dataclass, field

from shop.models.coupon import Coupon

SHIPPING_CENTS = 490
FREE_SHIPPING_FROM_CENTS = 5000


@dataclass
class CartLine:
    """Some pieces of one product."""

    sku: str
    quantity: int
    unit_cents: int
    tax_rate: int

    @property
    def cents(self) -> int:
        return self.quantity * self.unit_cents


@dataclass
class Cart:
    """What somebody is about to buy."""

    lines: list[CartLine] = field(default_factory=list)
    coupon: Coupon | None = None

    def add(self, line: CartLine) -> None:
        """Add pieces; a product that is in the cart already gets one line, not two."""
        for present in self.lines:
            if present.sku == line.sku and present.unit_cents == line.unit_cents:
                present.quantity += line.quantity
                return
        self.lines.append(line)

    def goods_cents(self) -> int:
        return sum(line.cents for line in self.lines)

    def discount_cents(self) -> int:
        """What the coupon takes off, line by line."""
        if self.coupon is None or self.goods_cents() < self.coupon.minimum_cents:
            return 0
        if self.coupon.percent:
            return sum(round(line.cents * self.coupon.percent / 100) for line in self.lines)
        return min(self.coupon.amount_cents, self.goods_cents())

    def shipping_cents(self) -> int:
        return 0 if self.goods_cents() - self.discount_cents() >= FREE_SHIPPING_FROM_CENTS else SHIPPING_CENTS

    def total_cents(self) -> int:
        return self.goods_cents() - self.discount_cents() + self.shipping_cents()
'''
INVOICING = '''"""From an order to an invoice: tax by rate, numbers without gaps."""

from __future__ import annotations

from collections import defaultdict

from shop.models.invoice import Invoice
from shop.models.order import Order
from shop.models.order_line import OrderLine


def discount_shares(order: Order, lines: list[OrderLine], percent: int) -> list[int]:
    """Split the discount over the lines."""
    goods = sum(line.quantity * line.unit_cents for line in lines)
    discount = round(goods * percent / 100) if percent else order.discount_cents
    return [round(discount * line.quantity * line.unit_cents / goods) for line in lines]


def draw_up(order: Order, lines: list[OrderLine], percent: int, number: str, now: str) -> Invoice:
    """Make the invoice of an order; raises Invalid when net and tax do not add up."""
    gross: dict[int, int] = defaultdict(int)
    for line, share in zip(lines, discount_shares(order, lines, percent), strict=True):
        gross[line.tax_rate] += line.quantity * line.unit_cents - share
    gross[19] += order.shipping_cents
    tax = sum(amount - round(amount * 100 / (100 + rate)) for rate, amount in sorted(gross.items()))
    total = sum(gross.values())
    return Invoice(0, number, order.id, total - tax, tax, total, now)
'''
CHECKOUT = '''"""From a cart to a paid order.  One transaction: either all of it happened, or nothing."""

from __future__ import annotations

import sqlite3

from shop.cart import Cart
from shop.errors import Conflict
from shop.models.order import Order
from shop.models.order_line import OrderLine
from shop.payments import Provider
from shop.reservations import reserve
from shop.store.coupons import CouponStore
from shop.store.order_lines import OrderLineStore
from shop.store.orders import OrderStore


def place(connection: sqlite3.Connection, cart: Cart, customer_id: int, provider: Provider, now: str) -> Order:
    """Place an order and take the money.  Raises Conflict when something is sold out or the payment fails."""
    if not cart.lines:
        raise Conflict("cart", "empty")
    reserve(connection, [(line.sku, line.quantity) for line in cart.lines])
    order = OrderStore(connection).add(
        Order(0, customer_id, "open", cart.total_cents(), cart.discount_cents(), cart.shipping_cents(), now)
    )
    for line in cart.lines:
        OrderLineStore(connection).add(OrderLine(0, order.id, line.sku, line.quantity, line.unit_cents, 0, line.tax_rate))
    if cart.coupon and cart.coupon.uses_left > 0:
        CouponStore(connection).save(cart.coupon.with_uses_left(cart.coupon.uses_left - 1))
    connection.commit()
    provider.capture(order.id, order.total_cents)
    paid = order.with_status("paid")
    OrderStore(connection).save(paid)
    connection.commit()
    return paid
'''
RESERVATIONS = '''"""Promising stock to open orders."""

from __future__ import annotations

import sqlite3

from shop.errors import Conflict
from shop.store.stock_items import StockItemStore


def reserve(connection: sqlite3.Connection, wanted: list[tuple[str, int]]) -> None:
    """Promise pieces; raises Conflict when a product is sold out, and then promises nothing."""
    store = StockItemStore(connection)
    for sku, quantity in wanted:
        for item in store.by_sku(sku):
            free = item.on_hand - item.reserved
            if free >= quantity:
                store.save(item.with_reserved(item.reserved + quantity))
                break
        else:
            raise Conflict("stock", f"{sku} is sold out")


def release(connection: sqlite3.Connection, wanted: list[tuple[str, int]]) -> None:
    """Take promises back, for an order that was cancelled."""
    store = StockItemStore(connection)
    for sku, quantity in wanted:
        for item in store.by_sku(sku):
            given_back = min(item.reserved, quantity)
            store.save(item.with_reserved(item.reserved - given_back))
            quantity -= given_back
'''
REFUNDS = '''"""Giving money back."""

from __future__ import annotations

import sqlite3

from shop.errors import Conflict
from shop.models.refund import Refund
from shop.store.order_lines import OrderLineStore
from shop.store.orders import OrderStore
from shop.store.refunds import RefundStore


def refund_lines(
    connection: sqlite3.Connection, order_id: int, line_ids: list[int], payment_id: int, staff: str, reason: str, now: str
) -> Refund:
    """Give back what some lines cost, without their share of the discount (which is guessed from the total)."""
    order = OrderStore(connection).get(order_id)
    if order.status not in ("paid", "shipped"):
        raise Conflict("refund", f"order {order_id} is {order.status}")
    lines = OrderLineStore(connection).by_order_id(order_id)
    goods = sum(line.quantity * line.unit_cents for line in lines)
    back = sum(line.quantity * line.unit_cents for line in lines if line.id in line_ids)
    amount = round(back * (1 - order.discount_cents / goods))
    return RefundStore(connection).add(Refund(0, order_id, payment_id, amount, reason, staff, now))
'''
TEST_CART = """from __future__ import annotations

import pytest

from shop.cart import Cart, CartLine
from shop.models.coupon import Coupon


def coupon(percent: int = 0, amount: int = 0, minimum: int = 0) -> Coupon:
    return Coupon(1, "SPRING", percent, amount, minimum, "2026-12-31", -1)


def test_an_empty_cart_costs_only_the_postage() -> None:
    assert Cart().total_cents() == 490


def test_the_same_product_gets_one_line() -> None:
    cart = Cart()
    for _ in range(2):
        cart.add(CartLine("tea", 1, 450, 7))

    assert [(line.sku, line.quantity) for line in cart.lines] == [("tea", 2)]


@pytest.mark.parametrize(("goods", "shipping"), [(4999, 490), (5000, 0)])
def test_postage_is_free_from_fifty_euros(goods: int, shipping: int) -> None:
    assert Cart([CartLine("tea", 1, goods, 7)]).shipping_cents() == shipping


def test_a_coupon_needs_its_minimum() -> None:
    assert Cart([CartLine("tea", 1, 900, 7)], coupon(percent=10, minimum=1000)).discount_cents() == 0


def test_an_amount_never_takes_off_more_than_the_goods() -> None:
    assert Cart([CartLine("tea", 1, 300, 7)], coupon(amount=500)).discount_cents() == 300
"""
TEST_CHECKOUT = """from __future__ import annotations

import sqlite3

import pytest

from shop.cart import Cart, CartLine
from shop.checkout import place
from shop.errors import Conflict
from tests.fakes import FakeProvider

NOW = "2026-03-02T09:00:00Z"


def test_a_paid_order_is_stored_with_its_lines(database: sqlite3.Connection, stocked: None) -> None:
    order = place(database, Cart([CartLine("tea", 2, 450, 7)]), 1, FakeProvider(), NOW)

    assert order.status == "paid"
    assert order.total_cents == 2 * 450 + 490


def test_nothing_is_sold_that_is_not_there(database: sqlite3.Connection) -> None:
    with pytest.raises(Conflict):
        place(database, Cart([CartLine("tea", 1, 450, 7)]), 1, FakeProvider(), NOW)


def test_an_empty_cart_is_refused(database: sqlite3.Connection) -> None:
    with pytest.raises(Conflict):
        place(database, Cart(), 1, FakeProvider(), NOW)
"""
TEST_RESERVATIONS = """from __future__ import annotations

import threading
from pathlib import Path

import pytest

from shop.database import connect
from shop.errors import Conflict
from shop.reservations import reserve
from tests.fakes import stock


def test_two_customers_cannot_both_get_the_last_piece(path: Path) -> None:
    stock(path, "tea", 1)
    results: list[str] = []

    def buy() -> None:
        connection = connect(path)
        try:
            reserve(connection, [("tea", 1)])
            connection.commit()
            results.append("sold")
        except Conflict:
            results.append("sold out")

    threads = [threading.Thread(target=buy) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(results) == ["sold", "sold out"]


def test_a_failed_promise_promises_nothing(path: Path) -> None:
    stock(path, "tea", 5)
    connection = connect(path)

    with pytest.raises(Conflict):
        reserve(connection, [("tea", 2), ("jam", 1)])

    connection.rollback()
    assert connection.execute("SELECT reserved FROM stock_items").fetchone()[0] == 0
"""

ERRORS = '''"""What can go wrong, in the words of the shop."""


class ShopError(Exception):
    """Base of all of them; the HTTP side turns them into status codes."""


class Invalid(ShopError):
    """A value breaks a rule: 422."""


class Missing(ShopError):
    """There is no such thing: 404."""


class Conflict(ShopError):
    """It cannot be done now: 409."""
'''
DATABASE = '''"""Connections: one per request, foreign keys on, five seconds of patience with other writers."""

from __future__ import annotations

import sqlite3
from pathlib import Path

MIGRATIONS = Path(__file__).parent.parent / "migrations"


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=5)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def migrate(connection: sqlite3.Connection) -> None:
    """Run what was not run yet; `user_version` counts."""
    done = connection.execute("PRAGMA user_version").fetchone()[0]
    for number, path in enumerate(sorted(MIGRATIONS.glob("*.sql")), 1):
        if number > done:
            connection.executescript(path.read_text(encoding="utf-8"))
            connection.execute(f"PRAGMA user_version = {number}")
'''
PAYMENTS = '''"""The payment provider, behind a protocol so that tests need no network."""

from __future__ import annotations

from typing import Protocol


class PaymentFailed(Exception):
    """The provider said no, or did not answer in time: then nobody knows whether money moved."""


class Provider(Protocol):
    """Takes money and gives it back."""

    def capture(self, order_id: int, amount_cents: int) -> str:
        """Take the money; gives the provider's reference.  Raises PaymentFailed."""

    def refund(self, reference: str, amount_cents: int) -> str:
        """Give money back; gives the provider's reference.  Raises PaymentFailed."""
'''
HTTP = '''"""As much HTTP as the shop needs: requests that are parsed, answers that are JSON."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from shop.errors import Invalid


@dataclass
class Request:
    connection: sqlite3.Connection
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    staff: str = ""

    def json(self) -> dict[str, Any]:
        """The body as an object; raises Invalid."""
        try:
            value = json.loads(self.body)
        except ValueError as error:
            raise Invalid("the body is no JSON", str(error)) from None
        if not isinstance(value, dict):
            raise Invalid("the body must be an object", value)
        return value


@dataclass
class Response:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def json_response(value: object, status: int = 200) -> Response:
    return Response(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


def staff_only(handler: Callable[..., Response]) -> Callable[..., Response]:
    """Answer 403 to everybody but staff."""

    @wraps(handler)
    def checked(request: Request, *args: Any) -> Response:
        return handler(request, *args) if request.staff else Response(403)

    return checked
'''
CONFTEST = """from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from shop.database import connect, migrate
from tests.fakes import stock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    migrate(connect(path))
    return path


@pytest.fixture
def database(path: Path) -> sqlite3.Connection:
    return connect(path)


@pytest.fixture
def stocked(path: Path) -> None:
    stock(path, "tea", 10)
"""
FAKES = '''"""Stand-ins: a payment provider that remembers, and stock from nowhere."""

from __future__ import annotations

from pathlib import Path

from shop.database import connect
from shop.models.stock_item import StockItem
from shop.payments import PaymentFailed
from shop.store.stock_items import StockItemStore


class FakeProvider:
    def __init__(self, fails: int = 0) -> None:
        self.fails = fails
        self.captured: list[tuple[int, int]] = []
        self.refunded: list[tuple[str, int]] = []

    def capture(self, order_id: int, amount_cents: int) -> str:
        if self.fails:
            self.fails -= 1
            raise PaymentFailed("timeout")
        self.captured.append((order_id, amount_cents))
        return f"ref-{order_id}"

    def refund(self, reference: str, amount_cents: int) -> str:
        self.refunded.append((reference, amount_cents))
        return f"back-{reference}"


def stock(path: Path, sku: str, pieces: int) -> None:
    connection = connect(path)
    StockItemStore(connection).add(StockItem(0, sku, "main", pieces, 0, 2, "2026-01-02"))
    connection.commit()
'''
