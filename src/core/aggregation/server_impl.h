/*
 * The inside of the server, shared by server.c, server_raw.c, server_send.c and server_deadline.c
 * and by nobody else.
 *
 * Invariants: a fragment is at its number modulo `kept`, one at a time; the set of a fragment in
 * work names exactly the workers whose values are in its sum (or raw row); a finished fragment
 * never changes; every fragment before `expected` is finished, and none at or behind expected +
 * positions has begun. So what a fragment replaces is nothing that anybody still needs.
 */
#ifndef GW_CORE_SERVER_IMPL_H
#define GW_CORE_SERVER_IMPL_H

#include "core/aggregation/left_out.h"
#include "core/aggregation/order_queue.h"
#include "core/aggregation/patience.h"
#include "core/aggregation/scaling.h"
#include "core/aggregation/server.h"
#include "core/host/app.h"

enum gw_fragment_state {
    GW_FRAGMENT_EMPTY,   /* the first contribution moves it on */
    GW_FRAGMENT_SUMMING, /* collects integers */
    GW_FRAGMENT_RAW,     /* a sum saturated, or a worker sent raw values: collects raw ones */
    GW_FRAGMENT_DONE,    /* has a result; a newer one replaces it */
};

#define GW_FRAGMENT_NO_ROW UINT32_MAX

struct gw_fragment {
    uint32_t seq;
    uint32_t key;
    uint32_t buf; /* the sum of what has come, once done the result */
    uint32_t raw; /* row of raw buffers, or GW_FRAGMENT_NO_ROW */
    uint16_t values;
    uint16_t index;     /* aggregator that its packets use */
    uint16_t new_index; /* after a collision */
    uint8_t state;      /* enum gw_fragment_state */
    uint8_t flags;      /* enum gw_agg_flag of the result */
    uint8_t parities;   /* GW_AGG_EVEN and GW_AGG_ODD of the contributors */
    uint8_t scale;      /* least offer of the contributors; once done: what the result says */
    uint8_t bound;      /* least of the contributors' */
    uint16_t lacks;     /* once done: workers that are not in the sum */
    struct gw_rank_set set;
};

/* One fragment after the other is sent again: a gap that costs a round trip for each. */
struct gw_crawl {
    uint32_t next; /* fragment that would be one more of it */
    uint8_t count;
    gw_time at;
};

/* When to do without stragglers; see server_deadline.c. */
struct gw_deadline {
    struct gw_left_out books;
    struct gw_patience patience;
    struct gw_rank_set asked;    /* for anything, and did not answer since */
    gw_time *asked_since;        /* by rank, of those */
    gw_time result_at;           /* the last; GW_TIME_NEVER: it lacked workers, or there is none */
    uint32_t result_key;         /* of its call */
    struct gw_rank_set late;     /* missing after a deadline, and not heard of since */
    struct gw_rank_set was_late; /* the last of them that were heard of */
    struct gw_rank_set silent;   /* asked for what their switches hold, and not heard of since */
    uint32_t *heard;             /* by rank: newest fragment with its values, less what `heard_all`
                                    says */
    struct gw_crawl *crawls;     /* by rank: results that it asked for */
    struct gw_crawl crawl;       /* fragments that were held up and then complete */
    uint32_t heard_all;          /* newest fragment with everybody's */
    uint32_t fresh_from;         /* of older fragments it is not known who was left out */
    uint32_t known;              /* newest fragment that more than half of the workers have sent */
    uint32_t known_key;          /* of its call */
    uint32_t positions;          /* who is asked */
    uint32_t span;               /* and for how many fragments */
    gw_time asked_at;            /* GW_TIME_NEVER: since the last result nobody was */
    gw_time trip;                /* from a request to an answer; 0: not known yet */
    gw_time since;               /* last result, contribution that was new, or round */
    uint8_t rounds;              /* since the last result */
    bool is_wanted;              /* the last gradient was of a call with a bound */
};

struct gw_server {
    struct gw_app app;
    struct gw_server_cfg cfg;
    uint32_t positions; /* of the workers' window */
    uint32_t kept;      /* fragments: two windows or four, a power of two */
    struct gw_agg_index index;
    void *index_memory;
    void *contributors_memory;
    uint16_t epoch;
    uint8_t levels; /* of switches in the tree */
    bool is_stopped;
    struct gw_contributors contributors;
    uint32_t *addresses; /* of workers, by rank */
    struct gw_fragment *fragments;
    int64_t *wide_sum;  /* one row of `values` */
    uint32_t *raw_bufs; /* raw_max rows of `world` */
    uint32_t *raw_seqs; /* raw_max: the fragment that has the row */
    uint32_t *raw_free; /* stack */
    uint32_t raw_free_count;
    gw_real *real_sum; /* one row of `values` */
    struct gw_order_queue orders;
    uint32_t expected;   /* first fragment without result */
    uint32_t open;       /* fragments begun and not done */
    uint32_t finals_end; /* no epoch before can have completed what is behind */
    uint32_t overtaken;  /* fragments before it that were in a collision have been asked for */
    uint64_t added;      /* packets of which something was new, but for complete sums */
    uint8_t rounds;      /* of requests since the last result */
    gw_time progress_at; /* last result or round, or when the first of `open` began */
    struct gw_overflow_rate overflow_rate;
    struct gw_deadline deadline;
    struct gw_server_stats stats;
};

/* Where fragment `seq` is, if it is not another one by now. */
static inline struct gw_fragment *gw_server_fragment(const struct gw_server *server, uint32_t seq)
{
    return &server->fragments[seq & (server->kept - 1)];
}

/* NULL: packets carry no payload. */
static inline struct gw_buf_pool *gw_server_bufs(const struct gw_server *server)
{
    return server->app.pool->bufs;
}

static inline void gw_server_release_buf(struct gw_server *server, uint32_t *buf)
{
    if (*buf != GW_BUF_NONE)
        gw_buf_release(gw_server_bufs(server), *buf);
    *buf = GW_BUF_NONE;
}

/* server.c */
/* A fragment has its result, in `buf`; `flags` as those of the result, besides what is known. */
void gw_server_finish(struct gw_server *server, struct gw_fragment *fragment, uint32_t buf,
                      uint8_t flags);
/* Publishes the sum of the integers that have come, which are all there will be. */
void gw_server_finish_sum(struct gw_server *server, struct gw_fragment *fragment);

/* server_raw.c: fragments whose integers do not fit, or may not. */
/* Gives the integers up and asks everybody for raw values. */
void gw_server_raw_turn(struct gw_server *server, struct gw_fragment *fragment);
/* A raw packet: one worker's own values. */
void gw_server_raw_add(struct gw_server *server, struct gw_fragment *fragment, struct gw_pkt *pkt,
                       const struct gw_rank_set *from);
/* Publishes the sum of the raw contributions that have come, which are all there will be. */
void gw_server_raw_finish(struct gw_server *server, struct gw_fragment *fragment);
/* Frees the fragment's row of raw contributions, if it has one. */
void gw_server_raw_release(struct gw_server *server, struct gw_fragment *fragment);
/* A row for raw contributions is free: asks again for the oldest fragment that found none. */
void gw_server_raw_invite(struct gw_server *server);

/* server_send.c: what leaves, and when the server asks. */
/* A result, or with GW_AGG_REQUEST a request, to one worker. */
void gw_server_order(struct gw_server *server, uint32_t seq, uint32_t dst, uint8_t flags);
/* To all workers: through the tree, or one by one. */
void gw_server_order_all(struct gw_server *server, uint32_t seq, uint8_t flags);
/*
 * Every worker has sent what comes before the complete fragment `seq`: what the others lack is in
 * switches, or lost. The request leaves before the result, or workers would infer a loss from it.
 */
void gw_server_ask_overtaken(struct gw_server *server, uint32_t seq);
/* When to ask next. The timer may be early: it does not follow every result. */
void gw_server_arm_quiet(struct gw_server *server);
/* Tries again when buffers may be free, and asks when it has been quiet for long. */
void gw_server_expire(struct gw_app *app, gw_time now);
extern const struct gw_sender_ops gw_server_sender_ops;

/* server_deadline.c: fragments that complete without stragglers. */
void gw_server_deadline_begin(struct gw_server *server, const struct gw_server_epoch *epoch);
/* A gradient with values of `from` has come, for a fragment that may be done by now. */
void gw_server_deadline_heard(struct gw_server *server, struct gw_fragment *fragment,
                              const struct gw_rank_set *from, bool is_resent, gw_time now);
/* A worker lacked the result of a fragment that is done. */
void gw_server_deadline_answered(struct gw_server *server, const struct gw_fragment *fragment,
                                 uint32_t rank, gw_time now);
/* There is a result, or something else that is new. */
void gw_server_deadline_restart(struct gw_server *server, bool has_result, gw_time now);
void gw_server_deadline_arm(struct gw_server *server);
void gw_server_deadline_expire(struct gw_server *server, gw_time now);

#endif
