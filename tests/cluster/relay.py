"""A TCP relay that is a bad network: relay.py ADDRESS PORT TARGET_PORT [delay=S] [jitter=S] [drop=P] [seed=N]

delay, jitter: what every piece of data waits, in its order. drop: the chance that a connection is
reset when data passes. Prints `ready`.
"""
import asyncio
import random
import sys


class Relay:
    def __init__(self, address, target, settings):
        self._address, self._target = address, target
        self._delay = float(settings.get('delay', 0))
        self._jitter = float(settings.get('jitter', 0))
        self._drop = float(settings.get('drop', 0))
        self._random = random.Random(int(settings.get('seed', 1)))

    async def connected(self, reader, writer):
        try:
            there, back = await asyncio.open_connection(self._address, self._target)
        except OSError:
            writer.transport.abort()
            return
        both = (writer, back)
        await asyncio.gather(self._pump(reader, back, both), self._pump(there, writer, both),
                             return_exceptions=True)
        for one in both:
            one.close()

    async def _pump(self, reader, writer, both):
        queue = asyncio.Queue()
        sender = asyncio.create_task(self._send(queue, writer))
        clock = asyncio.get_running_loop().time
        due = 0.0
        try:
            while data := await reader.read(65536):
                if self._random.random() < self._drop:
                    for one in both:
                        one.transport.abort()
                    break
                due = max(due, clock() + self._delay + self._random.random() * self._jitter)
                queue.put_nowait((due, data))
        except OSError:
            pass
        queue.put_nowait((due, b''))
        await sender

    @staticmethod
    async def _send(queue, writer):
        clock = asyncio.get_running_loop().time
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0.0, due - clock()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()


async def main():
    address, port, target = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    relay = Relay(address, target, dict(word.split('=', 1) for word in sys.argv[4:]))
    server = await asyncio.start_server(relay.connected, address, port)
    print('ready', flush=True)
    async with server:
        await server.serve_forever()


if __name__ == '__main__':
    asyncio.run(main())
