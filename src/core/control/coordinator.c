/*
 * Job control on the server's side; see coordinator.h.
 *
 * Invariants: while an epoch runs, every rank is IN or LEFT, and the switches of its tree have
 * confirmed it; the epoch's number has never been used by a worker or switch that is still there.
 */
#include "core/control/coordinator.h"

#include <string.h>

#include "base/align.h"
#include "base/error.h"
#include "core/host/app.h"
#include "core/control/job_tree.h"

enum {
    CLOSING_TRIES = 5, /* switches that hear none of them forget the job when it is idle */
};

enum seat_state {
    SEAT_FREE,   /* JOIN moves it on */
    SEAT_ASKED,  /* the old epoch is to end: JOIN moves it on */
    SEAT_JOINED, /* the next epoch moves it on */
    SEAT_IN,     /* WELCOME is sent; LEAVE, silence or the end of the epoch moves it on */
    SEAT_LEFT,   /* a fresh worker's JOIN, or the last LEAVE, moves it on */
};

/* What is known of a rank's worker. */
struct seat {
    uint32_t address;
    uint32_t incarnation;
    uint32_t expected;
    uint32_t path[GW_LEVELS_MAX];
    uint8_t path_count;
    uint8_t state;     /* enum seat_state */
    uint16_t epoch;    /* that the worker has last been in */
    bool is_fresh;     /* has nothing to go on with */
    bool resumes;      /* in the seat of one that left: begins at resume_seq */
    bool is_untouched; /* has calls in work, and no result since it was fresh */
    bool is_ready;     /* knows that it is in */
    bool is_claimed;   /* somebody else wants the rank, since claimed_at */
    gw_time claimed_at;
    gw_time heard;
};

struct gw_coordinator {
    struct gw_app app;
    struct gw_coordinator_cfg cfg;
    struct seat *seats; /* by rank */
    struct gw_job_way *ways;
    struct gw_job_tree tree;
    void *tree_memory;
    uint16_t *confirmed; /* members that each switch of the tree knows */
    enum gw_coordinator_phase phase;
    uint16_t epoch;        /* of the running or the last one */
    uint16_t failed_epoch; /* the last that failed, and why */
    enum gw_job_reason failed_reason;
    uint32_t failed_about;
    uint32_t resume_seq; /* where workers that left stopped */
    uint32_t tries;
    struct gw_coordinator_stats stats;
};

static bool is_vacant(const struct seat *seat)
{
    return seat->state == SEAT_FREE || seat->state == SEAT_LEFT;
}

static struct gw_pkt *make(struct gw_coordinator *co, uint32_t dst, enum gw_job_op op, uint32_t key)
{
    struct gw_pkt *pkt = gw_app_job_pkt(&co->app, dst, op);
    if (pkt) {
        pkt->key = key;
        pkt->epoch = co->epoch;
    }
    return pkt; /* NULL: the timer tries again */
}

/* A word to a worker that says no more than itself and a reason. */
static void tell(struct gw_coordinator *co, uint32_t dst, enum gw_job_op op, uint32_t key,
                 uint16_t epoch, enum gw_job_reason reason, uint32_t about)
{
    struct gw_pkt *pkt = make(co, dst, op, key);
    if (!pkt)
        return;
    pkt->epoch = epoch;
    pkt->index = (uint16_t)reason;
    pkt->job.word[0] = about;
    gw_app_control(&co->app, pkt);
}

static void tell_failed(struct gw_coordinator *co, uint32_t dst, uint32_t key, uint16_t epoch)
{
    tell(co, dst, GW_JOB_FAILED, key, epoch, co->failed_reason, co->failed_about);
}

static void send_welcome(struct gw_coordinator *co, uint32_t rank)
{
    const struct seat *seat = &co->seats[rank];
    const struct gw_place *place = &co->tree.places[rank];
    struct gw_pkt *pkt = make(co, seat->address, GW_JOB_WELCOME, seat->incarnation);
    if (!pkt)
        return;
    struct gw_job_terms terms = {
        .rank = (uint16_t)rank,
        .world = co->cfg.world,
        .values = co->cfg.values,
        .aggregators = (uint16_t)(co->cfg.aggregators - 1),
        .level = place->level,
        .position = place->bitmap ? (uint8_t)__builtin_ctz(place->bitmap) : 0,
        .above = {place->above[0], place->above[1]},
        .window_log2 = co->cfg.window_log2,
        .indexing = (uint8_t)co->cfg.indexing,
    };
    pkt->seq = seat->expected;
    pkt->index = co->cfg.share;
    pkt->scale = (uint8_t)co->cfg.scale_exponent;
    gw_job_terms_pack(&terms, pkt->job.word);
    gw_app_control(&co->app, pkt);
}

static void send_install(struct gw_coordinator *co, uint32_t index, uint32_t member)
{
    const struct gw_job_node *sw = &co->tree.nodes[index];
    struct gw_pkt *pkt = make(co, sw->via, GW_JOB_INSTALL, co->cfg.incarnation);
    if (!pkt)
        return;
    pkt->index = (uint16_t)member;
    pkt->seq = sw->member_count;
    pkt->job.word[0] = co->tree.members[sw->first_member + member];
    pkt->job.word[1] = gw_job_spot_pack(&sw->spot);
    pkt->job.word[2] = sw->address;
    gw_app_control(&co->app, pkt);
}

/* All that a switch does not know yet, or if it knows all, a word that the job lives. */
static void install(struct gw_coordinator *co, uint32_t index)
{
    uint32_t count = co->tree.nodes[index].member_count;
    bool knows_all = co->confirmed[index] == count;
    for (uint32_t member = 0; member < (knows_all ? 1 : count); member++)
        send_install(co, index, member);
}

static void arm(struct gw_coordinator *co, gw_time after, gw_time now)
{
    gw_app_arm(&co->app, gw_time_add(now, after));
}

static void enter(struct gw_coordinator *co, enum gw_coordinator_phase phase, gw_time now)
{
    co->phase = phase;
    co->tries = 0;
    arm(co, co->cfg.retry, now);
}

/*
 * The epoch is over, or cannot begin. Whoever has calls in work is told; a fresh worker is told
 * only if it is `refused`, else it joins on.
 */
static void dissolve(struct gw_coordinator *co, bool refused, enum gw_job_reason reason,
                     uint32_t about, gw_time now)
{
    co->failed_epoch = co->epoch;
    co->failed_reason = reason;
    co->failed_about = about;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        struct seat *seat = &co->seats[rank];
        bool is_fresh = seat->state == SEAT_JOINED && seat->is_fresh;
        if (is_fresh && refused)
            tell(co, seat->address, GW_JOB_REFUSED, seat->incarnation, 0, reason, about);
        else if (!is_vacant(seat) && !is_fresh)
            tell_failed(co, seat->address, seat->incarnation, seat->epoch);
        *seat = (struct seat){0};
    }
    gw_server_stop(co->cfg.server);
    enter(co, GW_COORDINATOR_GATHERING, now);
}

/* The tree stands: the epoch begins. */
static void run(struct gw_coordinator *co, gw_time now)
{
    uint32_t first_seq = co->cfg.first_seq;
    bool has_history = false;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        const struct seat *seat = &co->seats[rank];
        if (!seat->is_fresh && (!has_history || (int32_t)(seat->expected - first_seq) < 0))
            first_seq = seat->expected;
        has_history |= !seat->is_fresh;
    }
    if (!has_history)
        gw_server_stop(co->cfg.server); /* nothing of earlier epochs is meant */
    struct gw_server_epoch epoch = {
        .epoch = co->epoch,
        .levels = (uint8_t)co->tree.levels,
        .first_seq = first_seq,
        .places = co->tree.places,
    };
    gw_server_begin(co->cfg.server, &epoch);
    co->stats.epochs++;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        struct seat *seat = &co->seats[rank];
        if (!seat->is_fresh)
            seat->expected = first_seq;
        else
            seat->expected = has_history && seat->resumes ? co->resume_seq : first_seq;
        seat->state = SEAT_IN;
        seat->is_fresh = seat->resumes = seat->is_ready = false;
        seat->heard = now;
        send_welcome(co, rank);
        seat->epoch = co->epoch;
    }
    enter(co, GW_COORDINATOR_RUNNING, now);
}

static void run_when_installed(struct gw_coordinator *co, gw_time now)
{
    for (uint32_t i = 0; i < co->tree.node_count; i++)
        if (co->confirmed[i] != co->tree.nodes[i].member_count)
            return;
    run(co, now);
}

/* Everybody has joined: makes the tree and tells the switches. */
static void form(struct gw_coordinator *co, gw_time now)
{
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        const struct seat *seat = &co->seats[rank];
        co->ways[rank] = (struct gw_job_way){.worker = seat->address, .count = seat->path_count};
        memcpy(co->ways[rank].switches, seat->path, sizeof(seat->path));
        if ((int16_t)(seat->epoch - co->epoch) > 0)
            co->epoch = seat->epoch;
    }
    if (++co->epoch == 0)
        co->epoch++;
    enum gw_job_reason reason =
        gw_job_tree_make(&co->tree, co->tree_memory, co->ways, co->cfg.world, co->cfg.levels);
    if (reason != GW_JOB_OK) {
        dissolve(co, true, reason, co->tree.about, now);
        return;
    }
    enter(co, GW_COORDINATOR_INSTALLING, now);
    memset(co->confirmed, 0, co->tree.node_count * sizeof(*co->confirmed));
    for (uint32_t i = 0; i < co->tree.node_count; i++)
        install(co, i);
    run_when_installed(co, now);
}

/*
 * Begins when all have joined. A fresh worker among others that are in the middle of something can
 * take part only in the seat of one that left, or if nobody has a result yet; else whoever had its
 * seat has died.
 */
static void form_when_complete(struct gw_coordinator *co, gw_time now)
{
    bool has_results = false;
    uint32_t misfit = GW_RANK_NONE;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        const struct seat *seat = &co->seats[rank];
        if (seat->state != SEAT_JOINED)
            return;
        has_results |= !seat->is_fresh && !seat->is_untouched;
        if (seat->is_fresh && (!seat->resumes || co->cfg.agrees_exponents))
            misfit = rank;
    }
    if (has_results && misfit != GW_RANK_NONE)
        dissolve(co, false, GW_JOB_LOST, misfit, now);
    else
        form(co, now);
}

/* The epoch is to end: asks all for what they expect. */
static void gather(struct gw_coordinator *co, gw_time now)
{
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        struct seat *seat = &co->seats[rank];
        if (seat->state != SEAT_IN)
            continue;
        seat->state = SEAT_ASKED;
        tell(co, seat->address, GW_JOB_REPORT, seat->incarnation, seat->epoch, GW_JOB_OK, 0);
    }
    enter(co, GW_COORDINATOR_GATHERING, now);
}

static struct seat *seat_of(const struct gw_coordinator *co, uint32_t incarnation)
{
    for (uint32_t rank = 0; rank < co->cfg.world; rank++)
        if (co->seats[rank].state != SEAT_FREE && co->seats[rank].incarnation == incarnation)
            return &co->seats[rank];
    return NULL;
}

/*
 * A seat for a worker that has none, or NULL and a reason; GW_JOB_OK: it is too early to tell,
 * because whoever has the seat may be dead.
 */
static struct seat *seat_for(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now,
                             enum gw_job_reason *reason)
{
    uint16_t wanted = pkt->index;
    *reason = GW_JOB_FULL;
    if (wanted == GW_RANK_NONE) {
        for (uint32_t rank = 0; rank < co->cfg.world; rank++)
            if (is_vacant(&co->seats[rank]))
                return &co->seats[rank];
        return NULL;
    }
    *reason = GW_JOB_RANK;
    if (wanted >= co->cfg.world)
        return NULL;
    struct seat *seat = &co->seats[wanted];
    if (is_vacant(seat))
        return seat;
    if (seat->address == pkt->src && (int32_t)(pkt->key - seat->incarnation) > 0) {
        dissolve(co, false, GW_JOB_LOST, wanted, now); /* another life on the same host */
        return seat;
    }
    if (!seat->is_claimed) {
        seat->is_claimed = true;
        seat->claimed_at = now;
    }
    if (!gw_time_before(seat->claimed_at, seat->heard))
        *reason = GW_JOB_OK;
    return NULL;
}

static void take_seat(struct seat *seat, const struct gw_pkt *pkt, gw_time now)
{
    uint32_t count = pkt->scale & GW_JOB_PATH_COUNT;
    *seat = (struct seat){
        .address = pkt->src,
        .incarnation = pkt->key,
        .expected = pkt->seq,
        .path_count = (uint8_t)count,
        .state = SEAT_JOINED,
        .epoch = pkt->epoch,
        .is_fresh = pkt->scale & GW_JOB_PATH_FRESH,
        .is_untouched = pkt->scale & GW_JOB_PATH_UNTOUCHED,
        .resumes = seat->state == SEAT_LEFT || seat->resumes,
        .heard = now,
    };
    memcpy(seat->path, pkt->job.word, sizeof(seat->path));
}

/* A worker without a seat. */
static void join_new(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now)
{
    enum gw_job_reason reason;
    struct seat *seat = seat_for(co, pkt, now, &reason);
    if (!seat) {
        co->stats.refused += reason != GW_JOB_OK;
        if (reason != GW_JOB_OK)
            tell(co, pkt->src, GW_JOB_REFUSED, pkt->key, pkt->epoch, reason, pkt->index);
        return;
    }
    take_seat(seat, pkt, now);
    if (co->phase == GW_COORDINATOR_CLOSING)
        enter(co, GW_COORDINATOR_GATHERING, now);
    else if (co->phase == GW_COORDINATOR_GATHERING)
        gw_app_arm_by(&co->app, gw_time_add(now, co->cfg.retry));
    else
        gather(co, now); /* it replaces one that left */
    form_when_complete(co, now);
}

static void join(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now)
{
    bool is_fresh = pkt->scale & GW_JOB_PATH_FRESH;
    struct seat *seat = seat_of(co, pkt->key);
    if (seat && seat->state == SEAT_LEFT)
        return; /* late */
    if (!seat && !is_fresh && pkt->epoch == co->failed_epoch) {
        tell_failed(co, pkt->src, pkt->key, pkt->epoch);
    } else if (!seat) {
        join_new(co, pkt, now);
    } else if (seat->state == SEAT_IN && pkt->epoch == co->epoch) {
        gather(co, now); /* it has left the epoch, however that came about */
        take_seat(seat, pkt, now);
        form_when_complete(co, now);
    } else if (seat->state == SEAT_IN) {
        seat->heard = now;
        send_welcome(co, (uint32_t)(seat - co->seats)); /* the first one was lost */
    } else if (seat->state == SEAT_ASKED || co->phase == GW_COORDINATOR_GATHERING) {
        take_seat(seat, pkt, now);
        form_when_complete(co, now);
    } else {
        seat->heard = now;
    }
}

static void ready(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now)
{
    struct seat *seat = seat_of(co, pkt->key);
    if (!seat && pkt->epoch == co->failed_epoch) {
        tell_failed(co, pkt->src, pkt->key, pkt->epoch);
    } else if (!seat) {
        tell(co, pkt->src, GW_JOB_REPORT, pkt->key, pkt->epoch, GW_JOB_OK, 0);
    } else {
        seat->heard = now;
        if (seat->state == SEAT_IN && pkt->epoch == co->epoch)
            seat->is_ready = true;
    }
}

static void send_remove(struct gw_coordinator *co, uint32_t index)
{
    const struct gw_job_node *sw = &co->tree.nodes[index];
    struct gw_pkt *pkt = make(co, sw->via, GW_JOB_REMOVE, co->cfg.incarnation);
    if (!pkt)
        return;
    pkt->job.word[2] = sw->address;
    gw_app_control(&co->app, pkt);
}

/* The last worker has left. */
static void close_job(struct gw_coordinator *co, gw_time now)
{
    gw_server_stop(co->cfg.server);
    for (uint32_t rank = 0; rank < co->cfg.world; rank++)
        co->seats[rank] = (struct seat){0};
    enter(co, GW_COORDINATOR_CLOSING, now);
    for (uint32_t i = 0; i < co->tree.node_count; i++)
        send_remove(co, i);
}

static void leave(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now)
{
    struct seat *seat = seat_of(co, pkt->key);
    tell(co, pkt->src, GW_JOB_LEFT, pkt->key, pkt->epoch, GW_JOB_OK, 0);
    if (!seat || seat->state == SEAT_LEFT)
        return;
    seat->state = SEAT_LEFT;
    co->resume_seq = pkt->seq;
    uint32_t here = 0;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++)
        here += !is_vacant(&co->seats[rank]);
    if (here == 0)
        close_job(co, now);
}

static void installed(struct gw_coordinator *co, const struct gw_pkt *pkt, gw_time now)
{
    uint32_t i = 0;
    while (i < co->tree.node_count && co->tree.nodes[i].address != pkt->job.word[2])
        i++;
    if (i == co->tree.node_count || pkt->key != co->cfg.incarnation || pkt->epoch != co->epoch) {
        co->stats.stray++;
        return;
    }
    if (pkt->index != GW_JOB_OK && co->phase == GW_COORDINATOR_INSTALLING) {
        dissolve(co, true, (enum gw_job_reason)pkt->index, pkt->job.word[2], now);
        return;
    }
    co->confirmed[i] = (uint16_t)pkt->seq;
    if (co->phase == GW_COORDINATOR_INSTALLING)
        run_when_installed(co, now);
    else if (co->phase == GW_COORDINATOR_RUNNING && pkt->seq < co->tree.nodes[i].member_count)
        gw_app_arm_by(&co->app, gw_time_add(now, co->cfg.retry));
}

static void coordinator_input(struct gw_app *app, struct gw_pkt *pkt, gw_time now)
{
    struct gw_coordinator *co = (struct gw_coordinator *)app;
    switch ((enum gw_job_op)pkt->agg_flags) {
    case GW_JOB_JOIN:
        join(co, pkt, now);
        break;
    case GW_JOB_READY:
        ready(co, pkt, now);
        break;
    case GW_JOB_LEAVE:
        leave(co, pkt, now);
        break;
    case GW_JOB_INSTALLED:
        installed(co, pkt, now);
        break;
    default:
        co->stats.stray++; /* meant for others */
    }
    gw_pkt_release(app->pool, pkt);
}

/* Looks for a worker that is silent for too long; true when that ended the epoch. */
static bool find_lost(struct gw_coordinator *co, gw_time now)
{
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        struct seat *seat = &co->seats[rank];
        if (is_vacant(seat) || now - seat->heard < co->cfg.lost)
            continue;
        if (seat->state == SEAT_JOINED && seat->is_fresh) {
            *seat = (struct seat){0}; /* nobody counts on it yet */
            if (co->phase == GW_COORDINATOR_INSTALLING)
                gather(co, now);
            continue;
        }
        co->stats.losses++;
        dissolve(co, false, GW_JOB_LOST, rank, now);
        return true;
    }
    return false;
}

/* Repeats what was not answered; returns the time until the next look. */
static gw_time repeat(struct gw_coordinator *co)
{
    gw_time next = GW_TIME_NEVER;
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        const struct seat *seat = &co->seats[rank];
        if (seat->state == SEAT_ASKED)
            tell(co, seat->address, GW_JOB_REPORT, seat->incarnation, seat->epoch, GW_JOB_OK, 0);
        else if (seat->state == SEAT_IN && !seat->is_ready)
            send_welcome(co, rank);
        if (!is_vacant(seat))
            next = co->cfg.retry;
    }
    if (co->phase == GW_COORDINATOR_CLOSING && co->tries++ < CLOSING_TRIES) {
        for (uint32_t i = 0; i < co->tree.node_count; i++)
            if (co->confirmed[i])
                send_remove(co, i);
        return co->cfg.retry;
    }
    if (co->phase == GW_COORDINATOR_CLOSING)
        co->phase = GW_COORDINATOR_GATHERING;
    if (co->phase == GW_COORDINATOR_INSTALLING || co->phase == GW_COORDINATOR_RUNNING) {
        bool is_settled = co->phase == GW_COORDINATOR_RUNNING;
        for (uint32_t i = 0; i < co->tree.node_count; i++) {
            is_settled &= co->confirmed[i] == co->tree.nodes[i].member_count;
            install(co, i);
        }
        for (uint32_t rank = 0; rank < co->cfg.world; rank++)
            is_settled &= co->seats[rank].state != SEAT_IN || co->seats[rank].is_ready;
        return is_settled ? co->cfg.beat : co->cfg.retry;
    }
    return next;
}

static void coordinator_expire(struct gw_app *app, gw_time now)
{
    struct gw_coordinator *co = (struct gw_coordinator *)app;
    if (find_lost(co, now))
        return;
    gw_time next = repeat(co);
    gw_app_arm(app, next == GW_TIME_NEVER ? next : gw_time_add(now, next));
}

static const struct gw_app_ops coordinator_app_ops = {
    .role = GW_APP_COORDINATOR,
    .input = coordinator_input,
    .expire = coordinator_expire,
};

/* Carves the tables out of `at`, or with NULL only measures them. */
static size_t carve(struct gw_coordinator *co, const struct gw_coordinator_cfg *cfg,
                    unsigned char *at)
{
    size_t used = gw_aligned(sizeof(*co));
    size_t switches = (size_t)cfg->world * GW_LEVELS_MAX;
#define TAKE(field, size)                                                                          \
    do {                                                                                           \
        if (at)                                                                                    \
            co->field = (void *)(at + used);                                                       \
        used += gw_aligned(size);                                                                  \
    } while (0)
    TAKE(seats, cfg->world * sizeof(struct seat));
    TAKE(ways, cfg->world * sizeof(struct gw_job_way));
    TAKE(confirmed, switches * sizeof(uint16_t));
    TAKE(tree_memory, gw_job_tree_size(cfg->world));
#undef TAKE
    return used;
}

size_t gw_coordinator_size(const struct gw_coordinator_cfg *cfg)
{
    return carve(NULL, cfg, NULL);
}

int gw_coordinator_init(struct gw_coordinator **result, void *memory,
                        const struct gw_coordinator_cfg *cfg, struct gw_endpoint *ep)
{
    GW_ASSERT(cfg->world >= 1 && cfg->world <= GW_WORLD_MAX && cfg->incarnation != 0);
    GW_ASSERT(cfg->retry > 0 && cfg->beat > 0 && cfg->lost > cfg->beat);
    struct gw_coordinator *co = memory;
    memset(memory, 0, gw_coordinator_size(cfg));
    *co = (struct gw_coordinator){
        .app = {.ops = &coordinator_app_ops,
                .job = cfg->job,
                .sender = {.class = GW_CLASS_CONTROL}},
        .cfg = *cfg,
        /* No packet of an earlier life is taken for one of this. */
        .epoch = (uint16_t)(cfg->incarnation & INT16_MAX),
    };
    carve(co, cfg, memory);
    *result = co;
    return gw_app_attach(&co->app, ep);
}

void gw_coordinator_fini(struct gw_coordinator *co)
{
    gw_app_detach(&co->app);
}

void gw_coordinator_hear(struct gw_coordinator *co, uint32_t address, gw_time at)
{
    for (uint32_t rank = 0; rank < co->cfg.world; rank++) {
        struct seat *seat = &co->seats[rank];
        if (!is_vacant(seat) && seat->address == address && gw_time_before(seat->heard, at))
            seat->heard = at;
    }
}

enum gw_coordinator_phase gw_coordinator_phase(const struct gw_coordinator *co)
{
    return co->phase;
}

uint16_t gw_coordinator_epoch(const struct gw_coordinator *co)
{
    return co->epoch;
}

const struct gw_coordinator_stats *gw_coordinator_stats(const struct gw_coordinator *co)
{
    return &co->stats;
}
