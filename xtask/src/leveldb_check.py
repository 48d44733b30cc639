"""Exchanges a directory with Google's LevelDB, by plyvel, which brings the library along.

make DIR: a database by LevelDB, with tables, tombstones and records that are only in its log.
change DIR URL: what a server on DIR gives is what was made; then changes by the server.
check DIR: LevelDB reads the changes, and its own tools find no damage.
"""

import random
import sys
import urllib.request

try:
    import plyvel
except ImportError:
    import plyvel_next as plyvel

COUNT = 20_000


def key(number):
    # Percent-encoded the same way it is stored: digits and letters only.
    return b"key%06d" % number


def value(number, version):
    rng = random.Random(f"{number} {version}")
    if number % 4 == 0:
        return rng.randbytes(rng.randrange(3_000))
    return b"%d " % number * rng.randrange(100)


def made():
    records = {key(number): value(number, 1) for number in range(COUNT)}
    for number in range(0, COUNT, 7):
        del records[key(number)]
    return records


def changed():
    records = made()
    for number in range(0, COUNT, 5):
        records[key(number)] = value(number, 2)
    for number in range(0, COUNT, 11):
        records.pop(key(number), None)
    return records


def assert_same(what, found, expected):
    if list(found.items()) != sorted(expected.items()):
        missing = sorted(expected.keys() - found.keys())[:3]
        extra = sorted(found.keys() - expected.keys())[:3]
        other = [k for k in expected if k in found and found[k] != expected[k]][:3]
        sys.exit(f"{what}: missing {missing}, too many {extra}, different {other}")
    print(f"{what}: {len(found)} records are equal and in order")


def make(directory):
    # Small write buffers: several tables, and compactions.
    db = plyvel.DB(directory, create_if_missing=True, write_buffer_size=1 << 20, bloom_filter_bits=10)
    for number in range(COUNT):
        db.put(key(number), value(number, 1))
    for number in range(0, COUNT, 7):
        db.delete(key(number))
    assert_same("made by LevelDB", dict(db.iterator()), made())
    db.close()


def request(method, url, body=None):
    with urllib.request.urlopen(urllib.request.Request(url, body, method=method)) as response:
        return response.read()


def records_of(body):
    """Length-prefixed records (docs/http.md)."""
    records, at = {}, 0
    while True:
        length = int.from_bytes(body[at : at + 4], "little")
        if length == 0xFFFFFFFF:
            count = int.from_bytes(body[at + 4 : at + 12], "little")
            assert count == len(records) and at + 12 == len(body), "the end record"
            return records
        value_length = int.from_bytes(body[at + 4 : at + 8], "little")
        at += 8
        name, at = body[at : at + length], at + length
        records[name], at = body[at : at + value_length], at + value_length


def all_of(url):
    ask = urllib.request.Request(
        f"{url}/v0/entities?start=k", headers={"Accept": "application/vnd.kvant.records"}
    )
    with urllib.request.urlopen(ask) as response:
        return records_of(response.read())


def change(directory, url):
    assert_same("served by Kvant", all_of(url), made())
    for number in range(0, COUNT, 997):
        if number % 7:
            found = request("GET", f"{url}/v0/entity?id={key(number).decode()}")
            assert found == value(number, 1), number
    for number in range(0, COUNT, 5):
        request("PUT", f"{url}/v0/entity?id={key(number).decode()}", value(number, 2))
        if number % 2_000 == 1_000:
            request("POST", f"{url}/v0/admin/flush")
    for number in range(0, COUNT, 11):
        request("DELETE", f"{url}/v0/entity?id={key(number).decode()}")
    assert_same("changed by Kvant", all_of(url), changed())


def check(directory):
    # Checksums of all blocks, and no mercy with the log.
    db = plyvel.DB(directory, create_if_missing=False, paranoid_checks=True)
    assert_same("read by LevelDB", dict(db.iterator(verify_checksums=True)), changed())
    db.compact_range()
    assert_same("compacted by LevelDB", dict(db.iterator(verify_checksums=True)), changed())
    db.close()
    plyvel.repair_db(directory)
    db = plyvel.DB(directory, create_if_missing=False)
    assert_same("repaired by LevelDB", dict(db.iterator(verify_checksums=True)), changed())
    db.close()


{"make": make, "change": change, "check": check}[sys.argv[1]](*sys.argv[2:])
