/*
 * What applications of an endpoint need. An application speaks for one job in one role: the workers
 * and the server of an aggregation, and the two sides of job control.
 *
 * To write one:
 *
 *   1. Make a struct that begins with a struct gw_app, and a table gw_app_ops. What it takes goes
 *      by its role: a new one is a line below, and a case in role_of() of endpoint.c.
 *   2. Set `ops` and `job`, and `sender.class`. An application that has data to send sets
 *      `sender.ops` too (egress.h). Then attach: from then on `ep`, `pool`, `hdr` and `train` say
 *      what the endpoint is.
 *   3. input() takes packets of the job, and releases them into `pool`. expire() comes when the
 *      timer fires, of which there is one: gw_app_arm(). Neither sends. What is to be sent waits
 *      until emit() is asked for it, after gw_app_wake(); what belongs to job control is queued at
 *      once: gw_app_job_pkt(), then gw_app_control().
 *   4. emit() takes a packet with gw_app_claim() and fills it with gw_app_pkt(). What can put out
 *      many at a time has extend(), too: gw_app_try(), gw_app_pkt_like().
 *   5. One that may announce bursts sets `notice`, and says when it has something to send after a
 *      time without, and when that is over: gw_app_busy(), gw_app_idle(). The rest sees to itself.
 *   6. Whoever polls the endpoint is told by events. A call that is to end with one promises it, so
 *      that there will be room: gw_app_may_promise(), gw_app_promise(), and at last gw_app_post().
 *
 * The endpoint is opaque to applications, and knows of them no more than what is here.
 */
#ifndef GW_CORE_APP_H
#define GW_CORE_APP_H

#include "core/host/egress.h"
#include "core/host/endpoint.h"
#include "core/job.h"

enum gw_app_role {
    GW_APP_WORKER,      /* takes parameter packets of its job */
    GW_APP_SERVER,      /* takes gradient packets of its job */
    GW_APP_MEMBER,      /* takes what job control says to workers */
    GW_APP_COORDINATOR, /* takes what job control says to the server */
    GW_APP_SLOT_WORKER, /* takes parameter packets of its job's slots */
};

/* First member of every application. */
struct gw_app {
    struct gw_sender sender;
    const struct gw_app_ops {
        enum gw_app_role role;
        /* Packets of the job arrived, one after the other; the application takes them. */
        void (*input)(struct gw_app *app, struct gw_pkt **pkts, uint32_t count, gw_time now);
        /* Its timer fired; it must move the timer behind `now` or disarm it. */
        void (*expire)(struct gw_app *app, gw_time now);
    } * ops;
    uint32_t job;
    struct gw_notice_terms notice; /* how it announces what it sends after an idle time */
    /* For reading, while attached. */
    uint32_t hdr;             /* header bytes of what gw_app_pkt() fills; the endpoint's, unless
                                 the application says otherwise */
    uint32_t train;           /* packets per train */
    uint32_t promised;        /* events that it will post */
    struct gw_endpoint *ep;   /* that it is attached to */
    struct gw_pkt_pool *pool; /* of the endpoint */
    gw_time timer_at;         /* when its timer fires; GW_TIME_NEVER: it is not armed */
    /* The endpoint's. */
    uint32_t timer; /* number among the endpoint's */
    uint32_t dst;   /* of its last packet */
    uint32_t key;   /* likewise */
    uint64_t head;  /* fragment that is the head of the last announced burst; UINT64_MAX: none */
};

/*
 * Attaches an application, which must stay where it is until it is detached. Returns 0;
 * GW_ERR_NO_ROOM; or GW_ERR_INVALID when the job has one of this role already.
 */
int gw_app_attach(struct gw_app *app, struct gw_endpoint *endpoint);

/* Neither asked nor told anything any more; its promises are void. */
void gw_app_detach(struct gw_app *app);

/* Moves the timer to `at`; GW_TIME_NEVER disarms it. */
void gw_app_arm(struct gw_app *app, gw_time at);

/* The same, unless the timer is armed for an earlier time. */
static inline void gw_app_arm_by(struct gw_app *app, gw_time at)
{
    if (gw_deadline_before(at, app->timer_at))
        gw_app_arm(app, at);
}

/* It may have something to send: see gw_egress_join(). */
static inline void gw_app_wake(struct gw_app *app)
{
    if (!app->sender.in_ring)
        gw_egress_join(app->ep, &app->sender);
}

/* It has nothing to send for now, whatever it would say if it were asked. If it was busy, it gives
 * up what it was busy with. */
void gw_app_rest(struct gw_app *app);

/*
 * From now on, until gw_app_idle() or gw_app_rest(), it has things to send to `dst`, or waits for
 * their results. If that begins a burst to be announced, what it wants to send waits for that.
 */
void gw_app_busy(struct gw_app *app, uint32_t dst, gw_time now);

/* It is busy no more: everything has been sent, and results have come. */
void gw_app_idle(struct gw_app *app, gw_time now);

/* Whether gw_app_idle() would make a difference. */
static inline bool gw_app_is_announced(const struct gw_app *app)
{
    return app->sender.announcer != 0;
}

/* Counts that an application found the pool empty. */
void gw_app_count_pool_empty(const struct gw_app *app);

/* A packet to fill, without payload; NULL when the pool is empty, which is counted. */
static inline struct gw_pkt *gw_app_claim(const struct gw_app *app)
{
    struct gw_pkt *pkt = gw_pkt_claim(app->pool);
    if (!pkt)
        gw_app_count_pool_empty(app);
    return pkt;
}

/* Gives the packet a buffer, if packets of this endpoint carry payload. False when none is free;
 * the packet is released then. */
static inline bool gw_app_try_buf(const struct gw_app *app, struct gw_pkt *pkt)
{
    if (!app->pool->bufs || (pkt->buf = gw_buf_claim(app->pool->bufs)) != GW_BUF_NONE)
        return true;
    gw_pkt_release(app->pool, pkt);
    return false;
}

/* The same, and it is counted. */
static inline bool gw_app_claim_buf(const struct gw_app *app, struct gw_pkt *pkt)
{
    bool has_room = gw_app_try_buf(app, pkt);
    if (!has_room)
        gw_app_count_pool_empty(app);
    return has_room;
}

/* A packet to fill, with such a buffer; or NULL, which is not counted. */
static inline struct gw_pkt *gw_app_try(const struct gw_app *app)
{
    struct gw_pkt *pkt = gw_pkt_claim(app->pool);
    return pkt && gw_app_try_buf(app, pkt) ? pkt : NULL;
}

/*
 * Fills a packet of the job towards `dst`: a gradient from a worker, a parameter from a server.
 * Left to the caller: key, epoch, agg_flags, index, and of `agg` all but `values`; and to end the
 * train before a packet to somebody else.
 */
void gw_app_pkt(struct gw_app *app, struct gw_pkt *pkt, uint32_t dst, uint32_t seq,
                uint32_t values);

/*
 * The same for another packet of the train, which must have room for it, towards the same: it is as
 * `before` but for its number and its buffer, and no head of a burst. Left to the caller: what else
 * differs of `scale`, `agg_flags` and `index`.
 */
static inline void gw_app_pkt_like(struct gw_app *app, struct gw_pkt *pkt,
                                   const struct gw_pkt *before, uint32_t seq)
{
    uint32_t buf = pkt->buf;
    GW_DEBUG_ASSERT(app->sender.train_left > 0);
    app->sender.train_left--;
    *pkt = *before;
    pkt->q.flags = 0;
    pkt->seq = seq;
    pkt->buf = buf;
}

/* The packet just filled is the last of its train. */
static inline void gw_app_end_train(struct gw_app *app)
{
    app->sender.train_left = 0;
}

/*
 * A packet of job control towards `dst`, to be filled in and given to gw_app_control(); NULL when
 * the pool is empty, which is counted.
 */
struct gw_pkt *gw_app_job_pkt(const struct gw_app *app, uint32_t dst, enum gw_job_op op);

/* Queues a packet of job control. */
static inline void gw_app_control(const struct gw_app *app, struct gw_pkt *pkt)
{
    gw_egress_control(app->ep, pkt);
}

/* Whether another event can be promised. */
bool gw_app_may_promise(const struct gw_app *app);

/* There will be an event, for which there must be room. */
void gw_app_promise(struct gw_app *app);

/* Posts an event that was promised. */
void gw_app_post(struct gw_app *app, const struct gw_event *event);

#endif
