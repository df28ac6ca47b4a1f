"""A callback runs a query that computes in the database's C code, without the GIL, while the loop waits."""

# finding: loop-stall, thread MainThread, line cause, severity severe, remedy none
import asyncio, sqlite3
connection = sqlite3.connect(":memory:")
connection.execute("create table sales (id, shop)")
connection.executemany("insert into sales values (?, ?)", ((row, row * 7 % 1000) for row in range(400_000)))
def report():
    return connection.execute("select shop, count(*) from sales group by shop order by 2").fetchall()  # cause
async def beat():
    while True:
        await asyncio.sleep(0.01)
async def main():
    beating = asyncio.create_task(beat())
    for _ in range(8):
        await asyncio.sleep(0.02)
        report()
    beating.cancel()
asyncio.run(main())
