"""A start method that Windows does not have, asked for by name."""

import multiprocessing as mp


def square(number):
    return number * number


if __name__ == "__main__":
    context = mp.get_context("forkserver")
    with context.Pool(processes=2) as pool:
        print(pool.map(square, range(4)))
