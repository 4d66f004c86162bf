"""Which connections are kept when there are too many."""

from dataclasses import dataclass, field

from services.search.guards.connections import SPARE, Connections


@dataclass(eq=False)
class Client:
    address: str = "192.0.2.1"
    idle: bool = True
    unread: int = 0
    ended: bool = field(default=False, init=False)

    def end(self) -> None:
        self.ended = True


def test_at_the_limit_the_connection_whose_last_request_is_longest_ago_makes_room() -> None:
    connections = Connections(most=3)
    first, second, third, fourth, fifth = [Client(f"192.0.2.{number}") for number in range(5)]
    assert all(connections.add(each) for each in (first, second, third))
    connections.used(first)
    assert connections.add(fourth)
    assert [each.ended for each in (first, second, third)] == [False, True, False]
    third.idle = False
    assert connections.add(fifth)
    assert [each.ended for each in (first, third, fourth)] == [True, False, False]


def test_a_connection_with_a_request_under_way_is_never_ended_for_another() -> None:
    connections = Connections(most=2)
    busy = [Client(idle=False), Client(idle=False)]
    assert all(map(connections.add, busy))
    late = Client()
    assert not connections.add(late)
    assert not any(each.ended for each in (*busy, late))


def test_when_a_connection_ends_another_has_its_place() -> None:
    connections = Connections(most=1, most_of_address=1)
    first, beyond = Client(idle=False), Client(idle=False)
    connections.add(first)
    assert not connections.add(beyond)
    for each in (first, beyond, beyond):
        connections.remove(each)
    assert connections.add(Client())


def test_few_connections_are_taken_beyond_the_limit() -> None:
    connections = Connections(most=10)
    clients = [Client(idle=False) for _ in range(10 + SPARE + 5)]
    within = [connections.add(each) for each in clients]
    assert within.count(True) == 10
    assert [each.ended for each in clients].count(True) == 5
    assert all(each.ended for each in clients[-5:])


def test_an_idle_connection_beyond_the_limit_makes_room_for_the_next() -> None:
    connections = Connections(most=1)
    connections.add(Client(idle=False))
    clients = [Client() for _ in range(3 * SPARE)]
    assert not any(map(connections.add, clients))
    assert all(each.ended for each in clients[:-1])
    assert not clients[-1].ended


def test_an_address_at_its_limit_takes_no_places_from_others() -> None:
    connections = Connections(most=100, most_of_address=3)
    other = Client("192.0.2.2")
    connections.add(other)
    many = [Client() for _ in range(20)]
    assert all(map(connections.add, many))
    assert [each.ended for each in many].count(False) == 3
    assert not other.ended
    for each in many:
        each.idle = False
    assert not connections.add(Client())
    assert connections.add(Client("192.0.2.3"))
    connections.remove(many[-1])
    connections.remove(many[-2])
    assert connections.add(Client())


def test_without_a_limit_for_addresses_one_may_have_all() -> None:
    connections = Connections(most=5, most_of_address=0)
    assert all(connections.add(Client(idle=False)) for _ in range(5))


def test_beyond_the_limit_of_unread_bytes_the_largest_answer_of_the_address_with_the_most_is_cut_off() -> None:
    connections = Connections(most_unread=1_000_000)
    other = Client("192.0.2.2", unread=600_000)
    clients = [Client(unread=number * 100_000) for number in (4, 3, 2)]
    for each in (other, *clients):
        connections.add(each)
        connections.answered(each)
    assert [each.ended for each in (other, *clients)] == [False, True, False, False]


def test_one_answer_may_be_larger_than_the_limit_and_small_ones_never_cut_others_off() -> None:
    connections = Connections(most_unread=1_000_000)
    large, small = Client(unread=5_000_000), Client("192.0.2.2", unread=50_000)
    for each in (large, small):
        connections.add(each)
        connections.answered(each)
    assert not large.ended
    connections.answered(Client("192.0.2.3", unread=200_000))
    assert (large.ended, small.ended) == (True, False)
