/* A worker's membership of its job; see member.h. */
#include "core/control/member.h"

#include "base/error.h"
#include "base/stall.h"
#include "core/host/app.h"

struct gw_member {
    struct gw_app app;
    struct gw_member_cfg cfg;
    struct gw_worker *worker; /* NULL before the first epoch */
    enum gw_member_state state;
    bool is_fresh;    /* has nothing to go on with: its calls failed, or it never had any */
    bool is_to_leave; /* as soon as the next epoch has begun, which may need its results */
    uint32_t incarnation;
    uint32_t fresh_seq;        /* first fragment of the last epoch that it entered fresh */
    struct gw_welcome welcome; /* to the last epoch; 0: none */
    enum gw_job_reason reason; /* of being out */
    uint32_t about;            /* rank or address that it is about */
    gw_time since;             /* beginning of the state */
};

/* The rank that it has, or wants to have. */
static uint16_t own_rank(const struct gw_member *member)
{
    return member->welcome.epoch ? member->welcome.terms.rank : member->cfg.rank;
}

static void send(struct gw_member *member, enum gw_job_op op)
{
    struct gw_pkt *pkt = gw_app_job_pkt(&member->app, member->cfg.server, op);
    if (!pkt)
        return; /* the timer tries again */
    pkt->key = member->incarnation;
    pkt->epoch = member->welcome.epoch;
    pkt->index = own_rank(member);
    pkt->seq = member->worker ? gw_worker_expected(member->worker) : 0;
    if (op == GW_JOB_JOIN)
        pkt->q.flags = (uint8_t)(member->cfg.notice << GW_JOB_OPTION_SHIFT);
    if (op == GW_JOB_JOIN && member->is_fresh)
        pkt->scale = GW_JOB_PATH_FRESH;
    else if (op == GW_JOB_JOIN && pkt->seq == member->fresh_seq)
        pkt->scale = GW_JOB_PATH_UNTOUCHED;
    gw_app_control(&member->app, pkt);
}

static void enter(struct gw_member *member, enum gw_member_state state, gw_time now)
{
    member->state = state;
    member->since = now;
}

/* Posts the event that was promised, if one was. */
static void post(struct gw_member *member, enum gw_event_kind kind, enum gw_job_reason reason,
                 uint32_t about, gw_time now)
{
    if (!member->app.promised)
        return;
    gw_app_post(&member->app, &(struct gw_event){
                                  .kind = kind,
                                  .flow = member->cfg.job,
                                  .peer = member->cfg.server,
                                  .rank = own_rank(member),
                                  .reason = (uint8_t)reason,
                                  .about = about,
                                  .at = now,
                              });
}

/* The job is over for this worker: its calls fail. */
static void go_out(struct gw_member *member, enum gw_job_reason reason, uint32_t about, gw_time now)
{
    gw_app_arm(&member->app, GW_TIME_NEVER);
    enter(member, GW_MEMBER_OUT, now);
    member->is_fresh = true;
    member->is_to_leave = false;
    member->reason = reason;
    member->about = about;
    if (member->worker)
        gw_worker_fail(member->worker, reason, about, now);
    post(member, GW_EVENT_REFUSED, reason, about, now);
}

static void ask_to_join(struct gw_member *member, gw_time now)
{
    send(member, GW_JOB_JOIN);
    gw_app_arm(&member->app, gw_time_add(now, member->cfg.retry));
}

/* Once the server has all that only this worker may have. */
static void ask_to_leave(struct gw_member *member, gw_time now)
{
    if (!member->worker || !gw_worker_owes(member->worker))
        send(member, GW_JOB_LEAVE);
    gw_app_arm(&member->app, gw_time_add(now, member->cfg.retry));
}

static struct gw_worker_place place_of(const struct gw_member *member)
{
    const struct gw_job_terms *terms = &member->welcome.terms;
    return (struct gw_worker_place){
        .epoch = member->welcome.epoch,
        .level = terms->level,
        .bitmap = terms->level == 0 ? UINT32_C(1) << terms->position : 0,
        .above = {terms->above[0], terms->above[1]},
        .first_seq = member->welcome.first_seq,
        .is_fresh = member->is_fresh,
    };
}

/* Whether it says why there is no job, in words that we know. */
static bool has_reason(const struct gw_pkt *pkt)
{
    return pkt->index != GW_JOB_OK && pkt->index < GW_JOB_REASONS;
}

/*
 * Whether a WELCOME can follow the last one in this life: it is none that comes twice, and begins
 * with what the worker has a result of, or wants.
 */
static bool is_next(const struct gw_member *member, const struct gw_welcome *welcome)
{
    if (member->is_fresh || !member->worker)
        return true;
    return (int16_t)(welcome->epoch - member->welcome.epoch) > 0 &&
           (int32_t)(gw_worker_expected(member->worker) - welcome->first_seq) >= 0;
}

/* An epoch has begun. */
static void go_in(struct gw_member *member, const struct gw_welcome *welcome, gw_time now)
{
    member->welcome = *welcome;
    struct gw_worker_place place = place_of(member);
    if (member->is_fresh)
        member->fresh_seq = welcome->first_seq;
    if (member->worker)
        gw_worker_place(member->worker, &place, now);
    member->is_fresh = false;
    enter(member, GW_MEMBER_IN, now);
    gw_app_arm(&member->app, gw_time_add(now, member->cfg.beat));
    if (!member->is_to_leave)
        post(member, GW_EVENT_JOINED, GW_JOB_OK, 0, now);
}

static void take_welcome(struct gw_member *member, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_welcome welcome;
    enum gw_welcome_verdict verdict =
        gw_welcome_read(&welcome, pkt, &member->cfg.limits, own_rank(member));
    if (verdict == GW_WELCOME_MALFORMED)
        return;
    if (member->state == GW_MEMBER_JOINING && is_next(member, &welcome)) {
        bool agrees = !member->worker || gw_welcome_agrees(&member->welcome, &welcome);
        if (verdict == GW_WELCOME_BEYOND || !agrees) {
            go_out(member, GW_JOB_LIMIT, 0, now);
            return;
        }
        go_in(member, &welcome, now);
    }
    if (member->state == GW_MEMBER_IN && welcome.epoch == member->welcome.epoch)
        send(member, GW_JOB_READY);
    if (member->state == GW_MEMBER_IN && member->is_to_leave) {
        member->is_to_leave = false;
        enter(member, GW_MEMBER_LEAVING, now);
        ask_to_leave(member, now);
    }
}

static void report(struct gw_member *member, const struct gw_pkt *pkt, gw_time now)
{
    if (pkt->epoch != member->welcome.epoch || member->state != GW_MEMBER_IN || !member->worker)
        return;
    gw_worker_pause(member->worker);
    enter(member, GW_MEMBER_JOINING, now);
    ask_to_join(member, now);
}

static void take(struct gw_member *member, const struct gw_pkt *pkt, gw_time now)
{
    if (pkt->src != member->cfg.server || pkt->key != member->incarnation ||
        member->state == GW_MEMBER_OUT)
        return;
    switch ((enum gw_job_op)pkt->agg_flags) {
    case GW_JOB_WELCOME:
        take_welcome(member, pkt, now);
        break;
    case GW_JOB_REPORT:
        report(member, pkt, now);
        break;
    case GW_JOB_REFUSED:
        if (member->state == GW_MEMBER_JOINING && has_reason(pkt))
            go_out(member, (enum gw_job_reason)pkt->index, pkt->job.word[0], now);
        break;
    case GW_JOB_FAILED:
        if (pkt->epoch == member->welcome.epoch && !member->is_fresh &&
            member->state != GW_MEMBER_LEAVING && has_reason(pkt))
            go_out(member, (enum gw_job_reason)pkt->index, pkt->job.word[0], now);
        break;
    case GW_JOB_LEFT:
        if (member->state == GW_MEMBER_LEAVING) {
            gw_app_arm(&member->app, GW_TIME_NEVER);
            enter(member, GW_MEMBER_OUT, now);
            member->is_fresh = true;
            if (member->worker)
                gw_worker_pause(member->worker);
            post(member, GW_EVENT_LEFT, GW_JOB_OK, 0, now);
        }
        break;
    default:
        break; /* meant for others */
    }
}

static void member_input(struct gw_app *app, struct gw_pkt **pkts, uint32_t count, gw_time now)
{
    for (uint32_t i = 0; i < count; i++) {
        take((struct gw_member *)app, pkts[i], now);
        gw_pkt_release(app->pool, pkts[i]);
    }
}

/* Its worker has failed by itself. */
static bool is_failed(const struct gw_member *member)
{
    return member->state != GW_MEMBER_OUT && !member->app.promised && member->worker &&
           gw_worker_is_out(member->worker);
}

static void member_expire(struct gw_app *app, gw_time now)
{
    struct gw_member *member = (struct gw_member *)app;
    bool waits = member->state == GW_MEMBER_JOINING || member->state == GW_MEMBER_LEAVING;
    if (waits && gw_stall_is_over(member->since, member->cfg.stall, now)) {
        go_out(member, GW_JOB_SILENT, 0, now);
        return;
    }
    if (is_failed(member)) {
        go_out(member, GW_JOB_STALLED, 0, now);
        return;
    }
    switch (member->state) {
    case GW_MEMBER_JOINING:
        ask_to_join(member, now);
        break;
    case GW_MEMBER_LEAVING:
        ask_to_leave(member, now);
        break;
    case GW_MEMBER_IN:
        send(member, GW_JOB_READY);
        gw_app_arm(app, gw_time_add(now, member->cfg.beat));
        break;
    case GW_MEMBER_OUT:
        gw_app_arm(app, GW_TIME_NEVER);
        break;
    }
}

static const struct gw_app_ops member_app_ops = {
    .role = GW_APP_MEMBER,
    .input = member_input,
    .expire = member_expire,
};

size_t gw_member_size(void)
{
    return sizeof(struct gw_member);
}

int gw_member_init(struct gw_member **result, void *memory, const struct gw_member_cfg *cfg,
                   struct gw_endpoint *ep)
{
    GW_ASSERT(cfg->incarnation != 0 && cfg->retry > 0 && cfg->beat > 0);
    GW_ASSERT(cfg->notice < GW_NOTICE_OPTIONS);
    struct gw_member *member = memory;
    *member = (struct gw_member){
        .app = {.ops = &member_app_ops, .job = cfg->job, .sender = {.class = GW_CLASS_CONTROL}},
        .cfg = *cfg,
        .incarnation = cfg->incarnation,
        .is_fresh = true,
    };
    *result = member;
    return gw_app_attach(&member->app, ep);
}

void gw_member_fini(struct gw_member *member)
{
    gw_app_detach(&member->app);
}

void gw_member_set_server(struct gw_member *member, uint32_t server)
{
    if (member->state == GW_MEMBER_OUT && !member->worker)
        member->cfg.server = server;
}

int gw_member_join(struct gw_member *member, gw_time now)
{
    if (is_failed(member))
        go_out(member, GW_JOB_STALLED, 0, now);
    if (member->state != GW_MEMBER_OUT)
        return GW_ERR_INVALID;
    if (!gw_app_may_promise(&member->app))
        return GW_ERR_NO_ROOM;
    gw_app_promise(&member->app);
    if (member->welcome.epoch)
        member->incarnation++; /* another life, so that nothing of the last one is taken for it */
    enter(member, GW_MEMBER_JOINING, now);
    ask_to_join(member, now);
    return GW_OK;
}

int gw_member_leave(struct gw_member *member, gw_time now)
{
    bool is_between = member->state == GW_MEMBER_JOINING && !member->app.promised;
    if (member->state != GW_MEMBER_IN && !is_between)
        return GW_ERR_INVALID;
    if (!gw_app_may_promise(&member->app))
        return GW_ERR_NO_ROOM;
    gw_app_promise(&member->app);
    if (is_between) {
        member->is_to_leave = true;
    } else {
        enter(member, GW_MEMBER_LEAVING, now);
        ask_to_leave(member, now);
    }
    return GW_OK;
}

void gw_member_worker_cfg(const struct gw_member *member, struct gw_worker_cfg *cfg)
{
    const struct gw_job_terms *terms = &member->welcome.terms;
    struct gw_worker_place place = place_of(member);
    cfg->job = member->cfg.job;
    cfg->server = member->cfg.server;
    cfg->world = terms->world;
    cfg->values = terms->values;
    cfg->window_max = terms->window + UINT32_C(1);
    cfg->aggregators = terms->aggregators + UINT32_C(1);
    cfg->indexing = (enum gw_agg_indexing)terms->indexing;
    cfg->hashing = (enum gw_agg_hashing)terms->hashing;
    cfg->share = member->welcome.share;
    cfg->scale_exponent = member->welcome.scale_exponent;
    cfg->epoch = place.epoch;
    cfg->level = place.level;
    cfg->bitmap = place.bitmap;
    cfg->above[0] = place.above[0];
    cfg->above[1] = place.above[1];
    cfg->first_seq = place.first_seq;
    cfg->notice.job = member->cfg.job;
    cfg->notice.units = terms->notice;
}

void gw_member_bind(struct gw_member *member, struct gw_worker *worker)
{
    member->worker = worker;
}

enum gw_member_state gw_member_state(const struct gw_member *member)
{
    return member->state;
}

enum gw_job_reason gw_member_reason(const struct gw_member *member)
{
    return member->reason;
}

uint32_t gw_member_about(const struct gw_member *member)
{
    return member->about;
}

uint16_t gw_member_rank(const struct gw_member *member)
{
    return member->welcome.terms.rank;
}
