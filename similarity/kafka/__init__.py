"""Kafka: a producer that reports undelivered messages, and a consumer that reads partitions from given offsets.

Only this package uses confluent-kafka (the extra `kafka`), which is imported when a client is created.
"""

from similarity.kafka.client import confluent
from similarity.kafka.consumer import GroupOffsets, TopicConsumer, group_positions, topic_partitions
from similarity.kafka.producer import KeyedProducer
from similarity.kafka.records import End, GroupPosition, KafkaUnavailable, Lost, NotDelivered, Record
from similarity.kafka.settings import KafkaSettings

__all__ = [
    "End",
    "GroupOffsets",
    "GroupPosition",
    "KafkaSettings",
    "KafkaUnavailable",
    "KeyedProducer",
    "Lost",
    "NotDelivered",
    "Record",
    "TopicConsumer",
    "confluent",
    "group_positions",
    "topic_partitions",
]
