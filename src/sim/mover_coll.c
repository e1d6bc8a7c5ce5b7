/*
 * The mover of all-reduces among workers alone: each piece is a call of the core's coll_run, which
 * processes run as well, by a schedule of core/coll over flows.
 *
 * All members move the same pieces in the same order, so a piece is known to all by its number in
 * that order. A member begins one when all that are `room` or more before it are summed there. So
 * who begins piece n knows that every member has begun n - room, which therefore has the sums up to
 * n - 2 * room: runs and tags are used again in a circle of 2 * room places.
 *
 * What arrives for a piece that the member has not begun is kept: without payload nobody sends it
 * again. A sum is handed over when it is there (with payload, when its memory is free); its place
 * is used again when all that the member sent for it is acknowledged, too.
 *
 * With a bound each hop may miss its share of it (core/ranks/coll_parts.h), which blasts alone can
 * tell their receivers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/align.h"
#include "base/bits.h"
#include "base/cpu.h"
#include "base/error.h"
#include "core/quant/importance.h"
#include "core/ranks/coll_run.h"
#include "sim/message_terms.h"
#include "sim/mover.h"
#include "sim/notices.h"
#include "topo/memory.h"

enum {
    ROUNDS = 2,           /* times room: the places */
    PATIENCE = 2,         /* times host.stall: so that those who send to a dead worker name it */
    CALLS_MAX = 64,       /* of a schedule with little partitions */
    WORTH_STREAM = 0x3ab, /* of random numbers: which packets are important */
    FLOWS_DEFAULT = 4,    /* of 64 KiB: together the BDP of 100 Gb/s and 20 us */
};

enum call_state {
    CALL_IDLE,    /* move() moves it on */
    CALL_WAITING, /* earlier sums move it on, and acknowledgements for what had the place before */
    CALL_MOVING,  /* the sum moves it on */
    CALL_SUMMED,  /* the sums of all earlier pieces move it on */
};

/* One place of the circle. */
struct call {
    struct gw_coll_run *run;
    enum call_state state;
    uint32_t berth;        /* of the piece */
    struct gw_parts parts; /* of the piece; its importance is in the next */
    uint64_t *important;
    uint32_t important_room; /* words */
    struct gw_event *kept;   /* of a piece that has not begun */
    uint32_t kept_count, kept_room;
};

/* What a member has on its host. Pieces are numbered in their order. */
struct hold {
    struct call *calls;
    void *memory;   /* of the runs */
    uint64_t front; /* all pieces before it are summed */
    uint64_t end;   /* and none from here on is known */
};

/* What a job has. */
struct team {
    struct gw_coll_run_cfg cfg; /* but for rank and path */
    uint32_t places;
    uint32_t tags; /* of a call */
};

/* As many as the job says or else as the credit of its schedule has pieces, if it has some of both:
 * what waits here is out of the schedule's hands. */
static uint32_t room_of(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t pieces)
{
    (void)sim;
    const struct gw_train_spec *train = &spec->train;
    uint64_t partition = train->schedule->partition(train->schedule_cfg);
    uint64_t calls = spec->calls;
    if (calls == 0)
        calls = partition ? train->schedule->credit(train->schedule_cfg) / partition : 1;
    calls = calls < 1 ? 1 : calls < CALLS_MAX ? calls : CALLS_MAX;
    return pieces < calls ? pieces : (uint32_t)calls;
}

static uint32_t flows_of(const struct gw_job_spec *spec)
{
    return spec->flows ? spec->flows : FLOWS_DEFAULT;
}

/* Whether its calls say what they can do without, or what they are worth. */
static bool has_parts(const struct gw_job_spec *spec)
{
    const struct gw_job_worth *worth = &spec->worth;
    return gw_job_worth_loses(worth) || worth->priority != GW_JOB_PRIORITY_NONE ||
           worth->importance != GW_IMPORTANCE_ALL;
}

static uint32_t fragment_of(const struct gw_sim *sim)
{
    return sim->scenario->host.mtu / sizeof(float);
}

/* Tags of a call for the largest piece. */
static uint64_t call_tags(const struct gw_sim *sim, const struct gw_job_spec *spec)
{
    const struct gw_parts parts = {.bound = spec->worth.bound,
                                   .bound_pull = spec->worth.bound_pull};
    const struct gw_coll_call largest = {
        .coll = spec->coll,
        .tensor = {.count = gw_sim_piece_max(sim, spec) / sizeof(float), .type = GW_DTYPE_F32},
        .parts = has_parts(spec) ? &parts : NULL,
        .fragment = fragment_of(sim),
    };
    return gw_coll_call_tags(&largest, spec->worker_count, (uint32_t)spec->segment, flows_of(spec));
}

static uint64_t tags_of(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room)
{
    return ROUNDS * room * call_tags(sim, spec);
}

static struct gw_coll_run_cfg cfg_of(const struct gw_sim *sim, const struct gw_job_spec *spec)
{
    return (struct gw_coll_run_cfg){
        .world = spec->worker_count,
        .lanes_max = gw_coll_run_lanes(spec->coll, 0, spec->worker_count),
        .addresses = gw_sim_workers_of(sim, spec),
        .transport = &sim->scenario->transport,
        .path = {.rate_bps = sim->scenario->host_rate_bps},
        .parts_transport = has_parts(spec) ? &sim->scenario->transport : NULL,
        .mtu = sim->scenario->host.mtu,
        .segment = (uint32_t)spec->segment,
        .flows = flows_of(spec),
        .stall = PATIENCE * sim->scenario->host.stall,
        .notice = gw_sim_notices_of_job(sim, spec),
        .kernels = sim->scenario->host.payload ? gw_kernels_best(gw_cpu_features()) : NULL,
    };
}

static void add_demand(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room,
                       struct gw_sim_demand *demands)
{
    const struct gw_coll_run_cfg cfg = cfg_of(sim, spec);
    uint32_t awaits = ROUNDS * room * gw_coll_run_awaits(&cfg);
    for (uint32_t rank = 0; rank < spec->worker_count; rank++) {
        struct gw_sim_demand *demand = &demands[gw_sim_workers_of(sim, spec)[rank]];
        demand->sends += ROUNDS * room * gw_coll_run_sends(&cfg);
        demand->timed += ROUNDS * room * gw_coll_run_sends(&cfg);
        demand->receives += 2 * awaits; /* those complete still answer */
        demand->expects += cfg.kernels ? awaits : 0;
    }
}

/* The path to the farthest of those to whom a member sends. */
static struct gw_path path_of(const struct gw_sim *sim, const struct gw_coll_ops *coll,
                              const struct gw_coll_run_cfg *cfg)
{
    struct gw_path path = {0};
    uint32_t last = cfg->rank;
    for (uint32_t step = 0; step < coll->steps(cfg->world); step++) {
        uint32_t to = coll->step(cfg->rank, cfg->world, 0, step, 0).to;
        if (to == last)
            continue;
        last = to;
        struct gw_path other = gw_sim_app_path(sim, cfg->addresses[cfg->rank], cfg->addresses[to]);
        if (other.brtt > path.brtt)
            path = other;
    }
    return path;
}

static void hold_open(struct gw_sim *sim, const struct team *team, struct gw_sim_member *member)
{
    const struct gw_coll_ops *coll = gw_sim_job_of(sim, member)->spec->coll;
    struct gw_coll_run_cfg cfg = team->cfg;
    struct hold *hold = gw_memory_zeroed(1, sizeof(*hold));
    cfg.rank = member->rank;
    cfg.path = path_of(sim, coll, &cfg);
    size_t size = gw_aligned(gw_coll_run_size(&cfg));
    *hold = (struct hold){
        .calls = gw_memory_zeroed(team->places, sizeof(*hold->calls)),
        .memory = gw_memory_aligned(team->places * size),
    };
    for (uint32_t i = 0; i < team->places; i++)
        hold->calls[i].run = gw_coll_run_init((unsigned char *)hold->memory + i * size, &cfg,
                                              sim->nodes[member->place].endpoint);
    member->mover = hold;
}

static void hold_close(const struct gw_sim *sim, struct gw_sim_member *member)
{
    struct hold *hold = member->mover;
    const struct team *team = gw_sim_job_of(sim, member)->mover;
    if (!hold)
        return;
    for (uint32_t i = 0; i < team->places; i++) {
        free(hold->calls[i].kept);
        free(hold->calls[i].important);
    }
    free(hold->calls);
    free(hold->memory);
    free(hold);
    member->mover = NULL;
}

static int open_job(struct gw_sim *sim, uint32_t index, char *why)
{
    struct gw_sim_job *job = &sim->jobs[index];
    const struct gw_scenario *scenario = sim->scenario;
    if (gw_job_worth_loses(&job->spec->worth) && !scenario->transport.cc->on_report) {
        snprintf(why, GW_WHY_MAX,
                 "workload: bound: via a schedule each hop has a bound of its own, which only "
                 "cc: dlcp tells its receiver");
        return GW_ERR_INVALID;
    }
    if (has_parts(job->spec) && (scenario->host.mtu % sizeof(float) || scenario->host.payload ||
                                 job->spec->segment < scenario->host.mtu)) {
        snprintf(why, GW_WHY_MAX,
                 "workload: bound, priority, importance: via a schedule they need a host.mtu of a "
                 "multiple of 4, a segment no smaller, and no host.payload");
        return GW_ERR_INVALID;
    }
    struct team *team = gw_memory_zeroed(1, sizeof(*team));
    *team = (struct team){
        .cfg = cfg_of(sim, job->spec),
        .places = ROUNDS * job->room,
        .tags = (uint32_t)call_tags(sim, job->spec),
    };
    job->mover = team;
    for (uint32_t rank = 0; rank < job->spec->worker_count; rank++)
        hold_open(sim, team, gw_sim_member_of(sim, job->spec, rank));
    return GW_OK;
}

static void close_job(struct gw_sim *sim, uint32_t index)
{
    struct gw_sim_job *job = &sim->jobs[index];
    for (uint32_t rank = 0; job->mover && rank < job->spec->worker_count; rank++)
        hold_close(sim, gw_sim_member_of(sim, job->spec, rank));
    free(job->mover);
}

/* Notes a message that has been received for the piece of a place. */
static void take_note(const struct gw_sim *sim, const struct gw_sim_member *member,
                      const struct call *call, const struct gw_event *event)
{
    const struct gw_sim_job *job = gw_sim_job_of(sim, member);
    gw_sim_books_received(gw_sim_books_at(job->books, sim,
                                          gw_sim_workers_of(sim, job->spec)[member->rank],
                                          GW_MESSAGE_PUSH),
                          call->parts.class, event);
}

/* What the piece of a place can do without, and what it is worth. */
static void value(const struct gw_sim *sim, const struct gw_sim_member *member, struct call *call)
{
    const struct gw_sim_job *job = gw_sim_job_of(sim, member);
    const struct gw_job_worth *worth = &job->spec->worth;
    const struct gw_piece *piece = &member->pieces[call->berth];
    const uint32_t mtu = sim->scenario->host.mtu;
    const uint32_t packets = (uint32_t)((piece->bytes + mtu - 1) / mtu);
    call->parts = (struct gw_parts){
        .bound = worth->bound,
        .bound_pull = worth->bound_pull,
        .class = gw_sim_class_of(job, job->plan->tensors[piece->first_tensor].layer),
        .important_first = worth->important_first,
    };
    if (worth->importance == GW_IMPORTANCE_ALL)
        return;
    call->important = gw_memory_grow(call->important, &call->important_room, gw_bit_words(packets),
                                     sizeof(*call->important));
    call->parts.important = call->important;
    const struct gw_sim_worth own = {
        .worth = worth,
        .seed =
            gw_prng_derive(sim->options.seed, (uint64_t)WORTH_STREAM << 32 | member->rank).state +
            member->job,
        .number = piece->id,
        .round = member->backward,
        .bytes = piece->bytes,
        .packet = mtu,
    };
    struct gw_sim_books *books = gw_sim_books_at(
        job->books, sim, gw_sim_workers_of(sim, job->spec)[member->rank], GW_MESSAGE_PUSH);
    books->counts.important += gw_sim_draw_important(&own, call->important);
    books->counts.begun += packets;
}

/* Begins the piece of a place, whose run is idle. */
static void begin(const struct gw_sim *sim, struct gw_sim_member *member, uint32_t place,
                  gw_time now)
{
    const struct gw_sim_job *job = gw_sim_job_of(sim, member);
    const struct team *team = job->mover;
    struct call *call = &((struct hold *)member->mover)->calls[place];
    const struct gw_piece *piece = &member->pieces[call->berth];
    uint64_t first = member->in ? gw_sim_piece_first(job, piece) : 0;
    const struct gw_coll_call reduce = {
        .coll = job->spec->coll,
        .tensor = {.in = member->in ? member->in + first : NULL,
                   .out = member->out ? member->out + first : NULL,
                   .count = piece->bytes / sizeof(float),
                   .type = GW_DTYPE_F32,
                   .tag = job->first_tag + place * team->tags},
        .parts = has_parts(job->spec) ? &call->parts : NULL,
        .fragment = fragment_of(sim),
    };
    if (has_parts(job->spec))
        value(sim, member, call);
    call->state = CALL_MOVING;
    int error = gw_coll_run_start(call->run, &reduce, now);
    GW_ASSERT(error == GW_OK); /* it is idle, and the tags have been counted */
    for (uint32_t i = 0; i < call->kept_count; i++) {
        take_note(sim, member, call, &call->kept[i]);
        gw_coll_run_event(call->run, &call->kept[i], now);
    }
    call->kept_count = 0;
}

/* Takes note of what the run of a place has come to. */
static void look(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t place,
                 gw_time now)
{
    struct call *call = &((struct hold *)member->mover)->calls[place];
    struct gw_coll_run_status status = gw_coll_run_status(call->run);
    /* A tensor with memory is still being sent from until all is acknowledged. */
    bool is_summed =
        member->out ? status.state == GW_COLL_RUN_DONE : gw_coll_run_is_summed(call->run);
    if (status.state == GW_COLL_RUN_FAILED) {
        gw_sim_member_failed(part, member, status.reason, status.about, now);
    } else if (call->state == CALL_MOVING && is_summed) {
        call->state = CALL_SUMMED;
        gw_sim_piece_done(part, member, call->berth, now); /* which may move other pieces */
    }
}

/* Begins what waits and may; true: some of it was summed at once, so that more may. */
static bool begin_waiting(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    struct hold *hold = member->mover;
    const struct gw_sim_job *job = gw_sim_job_of(part->sim, member);
    const struct team *team = job->mover;
    bool is_summed = false;
    for (; hold->front < hold->end; hold->front++) {
        struct call *call = &hold->calls[hold->front % team->places];
        if (call->state != CALL_SUMMED)
            break;
        call->state = CALL_IDLE;
    }
    for (uint64_t i = hold->front; i < hold->end && i < hold->front + job->room; i++) {
        uint32_t place = (uint32_t)(i % team->places);
        struct call *call = &hold->calls[place];
        if (call->state != CALL_WAITING || member->outcome != GW_FLOW_PENDING ||
            gw_coll_run_status(call->run).state == GW_COLL_RUN_RUNNING)
            continue;
        begin(part->sim, member, place, now);
        look(part, member, place, now);
        is_summed |= call->state != CALL_MOVING;
    }
    return is_summed;
}

static void advance(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    while (begin_waiting(part, member, now)) {
    }
}

static void move(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t berth,
                 gw_time now)
{
    struct hold *hold = member->mover;
    const struct team *team = gw_sim_job_of(part->sim, member)->mover;
    struct call *call = &hold->calls[hold->end++ % team->places];
    GW_ASSERT(call->state == CALL_IDLE); /* of `room` pieces at least the first is not summed */
    call->state = CALL_WAITING;
    call->berth = berth;
    advance(part, member, now);
}

/* Keeps what has come for a piece that the member has not begun. */
static void keep(struct call *call, const struct gw_event *event)
{
    call->kept =
        gw_memory_grow(call->kept, &call->kept_room, call->kept_count + 1, sizeof(*call->kept));
    call->kept[call->kept_count++] = *event;
}

static void event(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t index,
                  const struct gw_event *event, gw_time now)
{
    const struct gw_sim_job *job = &part->sim->jobs[index];
    const struct team *team = job->mover;
    struct gw_sim_member *member = gw_sim_member_at(part->sim, node, index);
    uint32_t place = (event->tag - job->first_tag) / team->tags;
    if (!member || !member->mover || member->outcome == GW_FLOW_FAILED)
        return;
    struct call *call = &((struct hold *)member->mover)->calls[place];
    if (event->kind == GW_EVENT_RECEIVED && call->state != CALL_MOVING) {
        keep(call, event);
        return;
    }
    if (event->kind == GW_EVENT_RECEIVED)
        take_note(part->sim, member, call, event);
    gw_coll_run_event(call->run, event, now);
    look(part, member, place, now);
    advance(part, member, now);
}

static gw_time deadline(const struct gw_sim *sim, const struct gw_sim_member *member)
{
    const struct hold *hold = member->mover;
    const struct team *team = gw_sim_job_of(sim, member)->mover;
    gw_time at = GW_TIME_NEVER;
    for (uint32_t i = 0; i < team->places; i++) {
        gw_time own = gw_coll_run_deadline(hold->calls[i].run);
        at = own < at ? own : at;
    }
    return at;
}

static void expire(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    const struct hold *hold = member->mover;
    const struct team *team = gw_sim_job_of(part->sim, member)->mover;
    for (uint32_t i = 0; i < team->places; i++) {
        gw_coll_run_expire(hold->calls[i].run, now);
        look(part, member, i, now);
    }
}

/* Which hop a message is of, its sender knows: here it is enough that no hop may lose more. */
static gw_q16 bound_of(const struct gw_sim_job *job, uint32_t tag)
{
    const struct gw_job_worth *worth = &job->spec->worth;
    (void)tag;
    return worth->bound > worth->bound_pull ? worth->bound : worth->bound_pull;
}

static void member_crashed(struct gw_sim *sim, struct gw_sim_member *member, gw_time now)
{
    hold_close(sim, member);
    gw_sim_job_mourn(sim, gw_sim_job_of(sim, member), GW_JOB_LOST, member->rank, now);
}

const struct gw_sim_mover_ops gw_sim_mover_coll = {
    .name = "coll",
    .same_order = true,
    .sends_messages = true,
    .keeps_books = true,
    .bound = bound_of,
    .room = room_of,
    .tags = tags_of,
    .demand = add_demand,
    .open = open_job,
    .close = close_job,
    .move = move,
    .event = event,
    .deadline = deadline,
    .expire = expire,
    .member_crashed = member_crashed,
};
