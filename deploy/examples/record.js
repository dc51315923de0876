// Records an event in the transaction of a business change, from Node:
//
//   npm install pg
//   DATABASE_URL=... node deploy/examples/record.js

const { Client } = require("pg");

const payload = Buffer.from(JSON.stringify({ path: "C:\\temp" }));

/** Pays an invoice and says so; both happen or neither does. */
async function pay(client, invoice, eventId) {
  await client.query("begin");
  try {
    await client.query(
      "insert into invoices values ($1, true) on conflict (id) do update set paid = true",
      [invoice],
    );
    await client.query(
      // pg sends a Buffer as bytea: nothing happens to the backslash.
      `select ticketflow.record_event('default', 'invoice', $1, 'invoice.paid', $2::bytea,
         source => 'billing', event_id => $3)`,
      [invoice, payload, eventId],
    );
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

async function main() {
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  try {
    await client.query(
      "create table if not exists invoices (id text primary key, paid boolean not null)",
    );
    // Made once, before any try: the same id again is the same event.
    const { rows } = await client.query("select ticketflow.uuid_v7() as id");
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await pay(client, "2026-118", rows[0].id); // again, as after a lost answer to COMMIT
    }
    console.log(rows[0].id);
  } finally {
    await client.end();
  }
}

main().catch((error) => {
  console.error(error.message, error.code ?? "", error.hint ?? "");
  process.exit(1);
});
