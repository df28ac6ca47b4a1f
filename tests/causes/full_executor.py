"""All workers of the executor are busy, so a quick call waits behind sixty slow ones."""

# first: sleeping in `slow`
# finding: full-pool, thread views_0, line waits, remedy none, workers 4
import asyncio, concurrent.futures, time
def slow():
    time.sleep(0.1)  # waits
async def main():
    executor = concurrent.futures.ThreadPoolExecutor(4, thread_name_prefix="views")
    asyncio.get_running_loop().set_default_executor(executor)
    tasks = [asyncio.create_task(asyncio.to_thread(slow)) for _ in range(30)]
    await asyncio.sleep(0)
    await asyncio.to_thread(abs, 1)
    await asyncio.gather(*tasks)
asyncio.run(main())
