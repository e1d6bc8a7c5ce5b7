/* Inside of the store, shared by its files and by nobody else. See store.h. */
#ifndef GW_CORE_STORE_IMPL_H
#define GW_CORE_STORE_IMPL_H

#include "base/index_queue.h"
#include "core/ranks/mesh_wire.h"
#include "core/ranks/store.h"

enum {
    GW_STORE_MESSAGE_SIZE = 1024, /* one packet of the usual size; there are four for each rank */
    GW_STORE_HEADER_SIZE = 24,
    GW_STORE_DATA_MAX = GW_STORE_MESSAGE_SIZE - GW_STORE_HEADER_SIZE, /* bytes; more: a flow */

    GW_STORE_TAG_KIND_SHIFT = 24,
    GW_STORE_TAG_NUMBER = (1 << GW_STORE_TAG_KIND_SHIFT) - 1, /* mask */
};

/* Kinds of messages, in the tag. */
enum gw_store_kind {
    GW_STORE_REQUEST,
    GW_STORE_ANSWER,
    GW_STORE_DATA,
    GW_STORE_VALUE,
    GW_STORE_KINDS,
};

/* What a request asks for, and what an answer says. */
enum gw_store_word {
    GW_STORE_PUSH = 1,
    GW_STORE_PULL = 2,

    /* Below GW_STORE_DONE: enum gw_refused. */
    GW_STORE_DONE = 16,
    GW_STORE_GO,
};

/*
 * A request or an answer, as on the wire: a header, then data in the type's size, as many as there
 * are.
 *
 *    0                   1                   2                   3
 *    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *   +---------------+---------------+-------------------------------+
 *   |      word     |      type     |     parts     |     class     |
 *   +---------------+---------------+-------------------------------+
 *   |             bound             |               0               |
 *   +---------------------------------------------------------------+
 *   |                              key                              |
 *   |                                                               |
 *   +---------------------------------------------------------------+
 *   |                             count                             |
 *   |                                                               |
 *   +---------------------------------------------------------------+
 *
 * Big-endian. Count and type are those of the data; of a refusal, those found. Parts is 1 if a part
 * of the data may be missing, at most `bound` / 65536, which then travels in this class; else all
 * three are 0.
 */
struct gw_store_message {
    uint8_t header[GW_STORE_HEADER_SIZE];
    uint8_t data[GW_STORE_DATA_MAX];
};

/* What a header says. */
struct gw_store_header {
    uint8_t word; /* enum gw_store_word, or gw_refused */
    uint64_t key;
    struct gw_value_shape shape;
    struct gw_store_terms {
        bool has_parts;
        uint8_t class;
        gw_q16 bound;
    } terms;
};

enum gw_store_call_state {
    GW_STORE_CALL_FREE,
    GW_STORE_CALL_WAITS,   /* its turn, a way and room move it on */
    GW_STORE_CALL_ASKED,   /* the answer moves it on */
    GW_STORE_CALL_GRANTED, /* a push: room for its data moves it on */
    GW_STORE_CALL_SENDS,   /* that the data has been sent moves it on, and the answer */
    GW_STORE_CALL_ENDED,   /* polling moves it on */
};

struct gw_store_work {
    struct gw_store_call call;
    enum gw_store_call_state state;
    struct gw_store_work *next; /* to the same rank */
    uint32_t rank;
    uint32_t flow;    /* of the data */
    bool is_granted;  /* a push whose data the owner awaits */
    bool is_answered; /* while the data's flow has not ended */
    struct gw_refusal refusal;
    struct gw_finish finish; /* when a value of which a part may be missing is enough */
    uint64_t missing;        /* fragments of it */
};

/* What is to be done to a value. */
struct gw_store_task {
    uint64_t key;
    struct gw_value_shape shape;
    bool is_pull;
    const void *data; /* of a push */
    void *out;        /* of a pull */
    struct gw_store_terms terms;
    uint64_t *arrived; /* of a push: bits of the fragments that have; NULL: all */
    uint16_t *counts;  /* of a pull: where those of the fragments go; or NULL */
    struct gw_finish finish;
};

/* Another rank, as owner of what we ask for, and as requester of what we own. */
struct gw_store_pair {
    /* We ask. */
    struct gw_store_work *first, *last; /* calls; the first one is being done */
    struct gw_store_message request, answer;
    uint32_t requests, answers; /* numbers of those under way, or next */
    uint32_t request_flow;
    bool is_requesting; /* the request's flow has not ended */
    bool is_posted;     /* memory for the next answer is */

    /* We own. */
    struct gw_store_message asked, reply;
    uint32_t asked_number, reply_number; /* as above */
    struct gw_store_task task;
    void *staged;         /* data of a push that arrives, or of a pull that leaves; or NULL */
    uint32_t reply_bytes; /* 0: the value itself is the reply */
    uint32_t reply_flow;
    bool is_receiving; /* data of a push */
    bool reply_waits;  /* for room */
    bool is_replying;  /* the reply's flow has not ended */
};

struct gw_store {
    struct gw_store_cfg cfg;
    struct gw_values values;
    struct gw_store_pair *pairs; /* of all ranks; our own: calls and task only */
    struct gw_store_work *calls; /* cfg.limit */
    uint32_t call_count;         /* in work */
    bool is_serving;

    /* Work on values, one after the other. */
    uint16_t *ranks;             /* of the tasks; there is one of a rank at most */
    struct gw_index_queue tasks; /* of `ranks`, those that wait */
    uint64_t work_at;            /* elements done of the first */
    bool is_checked;             /* whether it is known that they fit */

    uint32_t replies_waiting;
    uint32_t *ended;                   /* calls */
    struct gw_index_queue ended_queue; /* of these, the ones that have not been polled */
};

/* Elements of a fragment of a value of the type. */
static inline uint32_t gw_store_fragment(const struct gw_store *store, enum gw_dtype type)
{
    return store->cfg.mtu / gw_dtype_size(type);
}

/* store.c */
/* Whether a message of so many bytes is what the event says has arrived of it. */
bool gw_store_fits(const struct gw_store *store, uint64_t bytes, bool has_parts,
                   const struct gw_event *event);
/* The tag of a message. */
uint32_t gw_store_tag(enum gw_store_kind kind, uint32_t number);
void gw_store_write(struct gw_store_message *message, const struct gw_store_header *header);
/* The header of a message of so many bytes. False: it makes no sense. */
bool gw_store_read(const struct gw_store_message *message, uint64_t bytes,
                   struct gw_store_header *header);
/* Posts memory, for which there is always room. */
void gw_store_expect(struct gw_store *store, uint32_t rank, uint32_t tag, void *data,
                     uint64_t bytes);
/* Fails the job: the rank does not keep to the protocol. */
void gw_store_blame(struct gw_store *store, uint32_t rank, gw_time now);

/* store_calls.c */
void gw_store_calls_event(struct gw_store *store, uint32_t rank, const struct gw_event *event,
                          gw_time now);
void gw_store_calls_advance(struct gw_store *store, gw_time now);
/* A task of our own has ended: `word` is GW_STORE_DONE, or why it is refused. */
void gw_store_calls_done(struct gw_store *store, uint8_t word, const struct gw_value_shape *found,
                         gw_time now);

/* store_owner.c */
void gw_store_owner_event(struct gw_store *store, uint32_t rank, const struct gw_event *event,
                          gw_time now);
void gw_store_owner_advance(struct gw_store *store, gw_time now);
/* Appends the rank's task to the work. */
void gw_store_owner_queue(struct gw_store *store, uint32_t rank);
/* Lets go of all that others have asked for. */
void gw_store_owner_drop(struct gw_store *store);

#endif
