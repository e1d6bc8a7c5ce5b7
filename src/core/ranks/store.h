/*
 * The store: a parameter server whose keys are divided among the ranks (Li et al., "Scaling
 * Distributed Machine Learning with the Parameter Server", OSDI 2014). The rank that keeps a key's
 * value, its owner, is the key's hash modulo the number of ranks.
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
 *
 * Of a push that may lose a part (core/parts.h), whose DATA is then a blast, what has arrived is
 * added, and a value keeps how many pushes each of its fragments has. A pull that may lose a part
 * gets these counts with its VALUE. What is missing there, nobody else misses: replicas that must
 * agree are for all-reduces.
 *
 * It needs endpoints whose messages carry payload: what a request asks for, a key of 64 bits and a
 * count, is more than a tag can say.
 */
#ifndef GW_CORE_STORE_H
#define GW_CORE_STORE_H

#include "core/parts.h"
#include "core/ranks/mesh.h"
#include "core/ranks/values.h"

/* Why a push or pull is refused. */
enum gw_refused {
    GW_REFUSED_NOT,
    GW_REFUSED_UNKNOWN_KEY, /* nobody has pushed it */
    GW_REFUSED_OTHER_SHAPE, /* the value has another count or type */
    GW_REFUSED_OVERFLOW,    /* a sum of integers does not fit */
    GW_REFUSED_NO_MEMORY,   /* the rank that keeps the value has none for it */
};

struct gw_refusal {
    enum gw_refused why;
    uint32_t rank; /* that keeps the value */
    uint64_t key;
    bool is_pull;
    struct gw_value_shape asked, found; /* `found`: if the shape is another */
};

/* A push to, or pull of, the value of a key. */
struct gw_store_call {
    uint64_t call; /* the caller's number; comes back */
    uint64_t key;
    void *data;                  /* read only by a push; the store's until the call has ended */
    struct gw_value_shape shape; /* at most GW_MESH_BYTES_MAX bytes */
    bool is_pull;
    const struct gw_parts *parts; /* or NULL; a pull's has masks and counts */
};

struct gw_store_done {
    uint64_t call;
    uint64_t missing;          /* fragments of a pull */
    struct gw_refusal refusal; /* why: GW_REFUSED_NOT: it was done */
};

struct gw_store_cfg {
    struct gw_mesh *mesh;
    uint32_t rank;
    uint32_t world;
    uint32_t limit;                             /* calls in work */
    const struct gw_transport *parts_transport; /* of what may lose a part; NULL: nothing may */
    uint32_t mtu;                               /* with it: payload bytes of a full packet */
    uint64_t largest; /* likewise: bytes of a value of which a part may be lost */
    const struct gw_kernels *kernels;
    struct gw_allocator allocator; /* of values, and of data that is on its way */
};

struct gw_store;

/* Flows that a store sends at the same time, and messages that it has memory posted for. */
uint32_t gw_store_flows(uint32_t world, uint32_t limit);
uint32_t gw_store_awaits(uint32_t world, uint32_t limit);

size_t gw_store_size(uint32_t world, uint32_t limit);

/* Makes one in `memory`, aligned to 64. Never fails. */
struct gw_store *gw_store_init(void *memory, const struct gw_store_cfg *cfg);

/* After the last packet; gives the values back. */
void gw_store_fini(struct gw_store *store);

/* The addresses of all ranks are known: takes their requests from now on. */
void gw_store_serve(struct gw_store *store);

/* Starts a call. Those to one rank are done in the order in which they are started. Returns 0 or
 * GW_ERR_NO_ROOM. */
int gw_store_start(struct gw_store *store, const struct gw_store_call *call);

/* Takes an event of the endpoint; false: it is not of a message of the store. A rank that does not
 * keep to the protocol fails the mesh (GW_JOB_BROKEN). */
bool gw_store_event(struct gw_store *store, const struct gw_event *event, gw_time now);

/* Sends what waits, and does a part of the work on values. */
void gw_store_advance(struct gw_store *store, gw_time now);

/* The next call that has ended; false: none. */
bool gw_store_poll(struct gw_store *store, struct gw_store_done *done);

/* Memory of calls is the callers' again. */
void gw_store_drop(struct gw_store *store);

/* Whether there is work on values without anything arriving. */
bool gw_store_has_work(const struct gw_store *store);

/* Whether others may ask this rank for a value at any time. */
bool gw_store_keeps_values(const struct gw_store *store);

/* The rank that some call waits for; `world`: none. */
uint32_t gw_store_awaited(const struct gw_store *store);

#endif
