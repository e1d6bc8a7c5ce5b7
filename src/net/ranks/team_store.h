/*
 * The store of the team: a parameter server whose keys are divided among the ranks (Li et
 * al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014). The rank that
 * keeps a key's value, its owner, is the key's hash modulo the number of ranks.
 *
 *     requester                                            owner
 *        | REQUEST (push or pull, key, shape, small data)    |
 *        |-------------------------------------------------->|
 *        |          ANSWER (status, shape found, small data) |  a small push or pull, or a refusal
 *        |<--------------------------------------------------|
 *        |                                      ANSWER (GO)  |  a large push: memory is there
 *        |<--------------------------------------------------|
 *        | DATA                                              |
 *        |-------------------------------------------------->|  then ANSWER (status)
 *        |                                             VALUE |  a large pull, instead of ANSWER
 *        |<--------------------------------------------------|
 *
 * Each arrow is a message of its own flow, which arrives once or fails the job. There is one
 * request at a time from a rank to another. So what is said next proves that what was said before
 * has arrived, and a message's tag, kind and number in its row, is never that of an old one.
 *
 * The owner does one request after the other, in parts, and a push changes nothing before all of
 * its data is there and is known to fit: a pull sees all of a push, or nothing of it.
 */
#ifndef GW_NET_TEAM_STORE_H
#define GW_NET_TEAM_STORE_H

#include "core/host/endpoint.h"
#include "net/ranks/team.h"

struct gw_team_store;

/* Flows that a store sends at the same time, and messages that it has memory posted for. */
uint32_t gw_team_store_flows(uint32_t world);
uint32_t gw_team_store_awaits(uint32_t world);

struct gw_team_store_cfg {
    struct gw_team *comm; /* which the store is a part of */
    uint32_t rank;
    uint32_t world;
};

/* Returns 0 or GW_ERR_NO_MEMORY; *store may be closed in either case. */
int gw_team_store_open(const struct gw_team_store_cfg *cfg, struct gw_team_store **store);

/* After the last packet; frees the values. NULL is allowed. */
void gw_team_store_close(struct gw_team_store *store);

/* The addresses of all ranks are known: takes their requests from now on. */
void gw_team_store_serve(struct gw_team_store *store);

/* Whether a message's tag is of a store. */
bool gw_team_store_owns(uint32_t tag);

/* Takes a call, which gw_team_store_advance() starts. Returns 0 or GW_ERR_NO_ROOM. */
int gw_team_store_start(struct gw_team_store *store, const struct gw_team_store_call *call);

/* Takes an event of such a message to or from `rank`. */
void gw_team_store_event(struct gw_team_store *store, uint32_t rank, const struct gw_event *event,
                         gw_time now);

/* Sends what waits, and does a part of the work on values. */
void gw_team_store_advance(struct gw_team_store *store, gw_time now);

/* Memory of calls is the callers' again. */
void gw_team_store_drop(struct gw_team_store *store);

bool gw_team_store_has_calls(const struct gw_team_store *store);
bool gw_team_store_has_work(const struct gw_team_store *store);

/* The rank that some call waits for. */
uint32_t gw_team_store_awaited(const struct gw_team_store *store);

#endif
