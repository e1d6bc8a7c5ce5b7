/*
 * A worker's membership of its job: joins, reports that it lives, leaves; see job.h.
 *
 * Attach it to an endpoint and join. GW_EVENT_JOINED says that the first epoch has begun: make a
 * worker from gw_member_worker_cfg() and bind it. From then on the member moves the worker from
 * epoch to epoch by itself, and fails the worker's calls when the job is over. To go on after a
 * failure, join again (all workers must): the worker stays, and GW_EVENT_JOINED comes again.
 */
#ifndef GW_CORE_MEMBER_H
#define GW_CORE_MEMBER_H

#include "core/aggregation/worker.h"
#include "core/control/welcome.h"

struct gw_member_cfg {
    uint32_t job;
    uint32_t server;      /* address */
    uint16_t rank;        /* wanted, or GW_RANK_NONE */
    uint32_t incarnation; /* random, not 0 */
    gw_time retry;        /* until an unanswered packet is sent again */
    gw_time beat;         /* between reports to the server */
    gw_time stall;        /* joining or leaving for so long fails; 0: never */
    uint8_t notice;       /* gw_notice_option: how it wants bursts announced; all workers of a job
                             bring the same */
    struct gw_welcome_limits limits; /* of terms; beyond them it is out: GW_JOB_LIMIT */
};

enum gw_member_state {
    GW_MEMBER_OUT,     /* gw_member_join() moves it on */
    GW_MEMBER_JOINING, /* WELCOME or REFUSED moves it on */
    GW_MEMBER_IN,      /* REPORT: joining again; FAILED: out */
    GW_MEMBER_LEAVING, /* LEFT, or a stall, moves it on */
};

struct gw_member;

/* Bytes of memory that a member needs. */
size_t gw_member_size(void);

/*
 * Makes a member, out, in `memory`, aligned to 64, and attaches it. Returns 0 and sets *member, or
 * the error of gw_app_attach().
 */
int gw_member_init(struct gw_member **member, void *memory, const struct gw_member_cfg *cfg,
                   struct gw_endpoint *endpoint);

/* Detaches at once, without a word to the server. */
void gw_member_fini(struct gw_member *member);

/* Where the server is, if it was not known before: while the member is out and has no worker. */
void gw_member_set_server(struct gw_member *member, uint32_t server);

/*
 * Starts to join; ends with GW_EVENT_JOINED, or with GW_EVENT_REFUSED and a reason. Returns 0,
 * GW_ERR_INVALID (it is not out), or GW_ERR_NO_ROOM (events wait to be polled).
 */
int gw_member_join(struct gw_member *member, gw_time now);

/*
 * Leaves; ends with GW_EVENT_LEFT, or with GW_EVENT_REFUSED when the job ends first. The worker
 * must have no calls in work. Errors as for join; the member must be in, or between two epochs.
 */
int gw_member_leave(struct gw_member *member, gw_time now);

/* Fills the job's terms into a worker's options; the rest is the caller's. After GW_EVENT_JOINED.
 */
void gw_member_worker_cfg(const struct gw_member *member, struct gw_worker_cfg *cfg);

/* From now on the member moves this worker. */
void gw_member_bind(struct gw_member *member, struct gw_worker *worker);

enum gw_member_state gw_member_state(const struct gw_member *member);

/* Why it is out: the last failure, also when no call was in work that could have said so; and the
 * rank or address that it is about. */
enum gw_job_reason gw_member_reason(const struct gw_member *member);
uint32_t gw_member_about(const struct gw_member *member);

/* The rank that the server gave. */
uint16_t gw_member_rank(const struct gw_member *member);

#endif
