/*
 * What is known of the messages of push and pull by their tags: which piece, which way, who, how
 * long, of what class. All of it is fixed by the job's plan, so both ends know the same.
 *
 * A piece up to job.whole bytes belongs to one server, by its number; larger ones are divided
 * evenly among all.
 */
#ifndef GW_SIM_PUSH_CATALOG_H
#define GW_SIM_PUSH_CATALOG_H

#include "sim/mover.h"

/* What a tag says. */
struct gw_sim_push {
    uint32_t piece;
    uint32_t server;
    uint32_t rank;
    enum gw_message_way way;
};

/* A piece. */
struct gw_sim_ware {
    uint64_t bytes; /* valid without fusion */
    uint8_t class;
};

/* By piece, to be freed; with fusion a piece has the class of its first tensor. */
struct gw_sim_ware *gw_sim_wares_open(const struct gw_sim_job *job);

uint64_t gw_sim_push_tags(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room);
uint32_t gw_sim_push_tag(const struct gw_sim_job *job, const struct gw_sim_push *push);
struct gw_sim_push gw_sim_push_of(const struct gw_sim_job *job, uint32_t tag);

/* The largest part of a message that may be missing. */
gw_q16 gw_sim_push_bound(const struct gw_sim_job *job, uint32_t tag);

/* Bytes of a message that was received, what is missing among them. */
uint64_t gw_sim_push_bytes(const struct gw_sim_job *job, const struct gw_sim_ware *wares,
                           const struct gw_event *event);

#endif
