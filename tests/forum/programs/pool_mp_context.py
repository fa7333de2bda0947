"""``Pool`` has no ``mp_context``: that is an argument of ``ProcessPoolExecutor``."""

import multiprocessing as mp


def square(number):
    return number * number


if __name__ == "__main__":
    with mp.Pool(processes=2, mp_context="spawn") as pool:
        print(pool.map(square, range(4)))
