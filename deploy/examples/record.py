"""Records an event in the transaction of a business change, from Python.

    pip install 'psycopg[binary]'
    DATABASE_URL=... python deploy/examples/record.py
"""

import json
import os

import psycopg

PAYLOAD = json.dumps({"path": "C:\\temp"}, separators=(",", ":")).encode()


def pay(connection, invoice, event_id):
    """Pays an invoice and says so; both happen or neither does."""
    with connection.transaction():
        connection.execute(
            "insert into invoices values (%s, true) on conflict (id) do update set paid = true",
            (invoice,),
        )
        connection.execute(
            # psycopg sends bytes as bytea: nothing happens to the backslash.
            "select ticketflow.record_event('default', 'invoice', %s, 'invoice.paid', %s::bytea,"
            " source => 'billing', event_id => %s)",
            (invoice, PAYLOAD, event_id),
        )


with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
    connection.execute(
        "create table if not exists invoices (id text primary key, paid boolean not null)"
    )
    # Made once, before any try: the same id again is the same event.
    (event_id,) = connection.execute("select ticketflow.uuid_v7()").fetchone()
    for attempt in range(2):  # as after a lost answer to COMMIT
        pay(connection, "2026-118", event_id)
    print(event_id)
