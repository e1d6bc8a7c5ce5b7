/*
 * What became of a job's messages: how long they took, what is missing of them, and how many of
 * their packets were important.
 *
 * Each partition writes its own books, one per way. Counts add up, so results do not depend on the
 * partitions. Durations are counted in bins of at most 1/128 of themselves; their mean and the
 * longest are exact.
 */
#ifndef GW_SIM_MESSAGE_BOOKS_H
#define GW_SIM_MESSAGE_BOOKS_H

#include "sim/sim_impl.h"

/* Packets. */
struct gw_sim_message_counts {
    uint64_t packets[GW_CLASSES]; /* of messages that are over at their receivers */
    uint64_t missing[GW_CLASSES]; /* of these */
    uint64_t begun;               /* of messages that have begun */
    uint64_t important;           /* of these */
};

struct gw_sim_books {
    struct gw_sim_message_counts counts;
    uint64_t *bins; /* messages that are over at their senders, by duration */
    unsigned __int128 total;
    gw_time longest;
};

/* Books of all partitions, to be closed with the same count. */
struct gw_sim_books *gw_sim_books_open(uint32_t part_count);
void gw_sim_books_close(struct gw_sim_books *books, uint32_t part_count);

/* Those of a way in the partition of `host`. */
struct gw_sim_books *gw_sim_books_at(struct gw_sim_books *books, const struct gw_sim *sim,
                                     uint32_t host, enum gw_message_way way);

/* A message is over at its sender, who was asked for it so long ago. */
void gw_sim_books_sent(struct gw_sim_books *books, gw_time duration);

/* A message is over at its receiver. */
void gw_sim_books_received(struct gw_sim_books *books, uint8_t class, const struct gw_event *event);

/* Results by way, and last those of all. */
void gw_sim_books_results(const struct gw_sim_books *books, uint32_t part_count,
                          struct gw_message_result results[GW_MESSAGE_WAYS + 1]);

#endif
