/*
 * The mover of push and pull: every worker pushes its gradients to servers as messages, and a
 * server answers with the sum, as a message of the same size, when all have pushed; or, without
 * synchrony, with what it has as soon as one has pushed. Servers may be on workers' hosts
 * (BytePS' N-to-N); what stays on a host passes no network and takes no time.
 *
 * Which server a piece belongs to is in push_catalog.h. Messages between a worker and a server go
 * over lines (message_line.h), one each way.
 *
 * Messages carry no payload, so a server counts: it answers when it has as many pushes of a piece
 * as there are workers, whatever is missing of them within the job's bound. A worker pushes the
 * piece again only when it has the answer, and nobody has it before all have pushed; so rounds
 * never mix, and every sum has every worker once.
 *
 * Workers choose the order of their pieces by themselves, so a piece may wait for others without
 * limit: a worker has room for all, and its schedule's credit back when a piece was pushed.
 *
 * A server that dies takes the parameters with it, so the job ends, as it does when a worker dies:
 * members learn of it after job.silence, as from connections that break.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "sim/message_line.h"
#include "sim/notices.h"
#include "sim/push_catalog.h"
#include "topo/memory.h"

enum {
    LANES_DEFAULT = 4, /* with two, both wait for their last ACKs together: they share the link */
    PATIENCE = 2,      /* times host.stall, without news: longer than a message takes to fail */
    WORTH_STREAM = 0x3a9, /* of random numbers: which packets are important */
};

/* A server of the job, on its host. */
struct desk {
    uint32_t host;
    struct gw_sim_line *lines; /* to each worker; NULL: its host is down */
    uint32_t *pushed;          /* workers that have pushed it in this round, by piece */
    uint64_t bytes;            /* that came over the network */
    uint64_t sums;             /* complete */
};

/* What a job has. */
struct shop {
    struct desk *desks;        /* one per server */
    struct gw_sim_ware *wares; /* by piece */
    uint32_t lanes;
};

/* What a member has on its host. */
struct hold {
    struct gw_sim_line *lines; /* to each server */
    uint32_t *berths;          /* by piece */
    uint32_t *parts;           /* of each piece under way, not back yet; by berth */
    uint32_t *leaving;         /* parts of each piece that have not been pushed yet; by piece */
    uint32_t moving;           /* pieces under way */
    gw_time heard_at;          /* last news while pieces were under way */
};

static uint32_t room_of(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t pieces)
{
    (void)sim;
    (void)spec;
    return pieces;
}

static uint32_t lanes_of(const struct gw_job_spec *spec)
{
    return spec->flows ? spec->flows : LANES_DEFAULT;
}

/* Flows to and from `peers` lines. */
static void add_lines(struct gw_sim_demand *demand, uint32_t lanes, uint32_t peers)
{
    demand->sends += lanes * peers;
    demand->timed += lanes * peers;
    demand->receives += 2 * lanes * peers; /* those complete still answer */
}

static void add_demand(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room,
                       struct gw_sim_demand *demands)
{
    (void)room;
    for (uint32_t rank = 0; rank < spec->worker_count; rank++)
        add_lines(&demands[gw_sim_workers_of(sim, spec)[rank]], lanes_of(spec), spec->server_count);
    for (uint32_t i = 0; i < spec->server_count; i++) {
        struct gw_sim_demand *demand = &demands[gw_sim_servers_of(sim, spec)[i]];
        add_lines(demand, lanes_of(spec), spec->worker_count);
        demand->servers++;
    }
}

/* Lines from a host to all those at the other end. */
static struct gw_sim_line *lines_open(struct gw_sim *sim, const struct gw_sim_job *job,
                                      uint32_t from, enum gw_message_way way)
{
    const struct gw_job_spec *spec = job->spec;
    const struct shop *shop = job->mover;
    bool pushes = way == GW_MESSAGE_PUSH;
    const uint32_t *to = pushes ? gw_sim_servers_of(sim, spec) : gw_sim_workers_of(sim, spec);
    uint32_t count = pushes ? spec->server_count : spec->worker_count;
    struct gw_sim_line *lines = gw_memory_zeroed(count, sizeof(*lines));
    uint64_t seed = gw_prng_derive(sim->options.seed, (uint64_t)WORTH_STREAM << 32 | from).state;
    for (uint32_t i = 0; i < count; i++) {
        if (to[i] == from)
            continue;
        gw_sim_line_open(&lines[i],
                         &(struct gw_sim_line_cfg){
                             .sim = sim,
                             .from = from,
                             .to = to[i],
                             .lanes = shop->lanes,
                             .notice = gw_sim_notices_of_job(sim, spec),
                             .worth = &spec->worth,
                             .bound = pushes ? spec->worth.bound : spec->worth.bound_pull,
                             .seed = gw_prng_derive(seed, (uint64_t)(job - sim->jobs)).state,
                             .books = gw_sim_books_at(job->books, sim, from, way),
                         });
    }
    return lines;
}

static void lines_close(struct gw_sim_line *lines, uint32_t count)
{
    for (uint32_t i = 0; lines && i < count; i++)
        gw_sim_line_close(&lines[i]);
    free(lines);
}

static void desk_open(struct gw_sim *sim, const struct gw_sim_job *job, struct desk *desk,
                      uint32_t host)
{
    desk->host = host;
    desk->lines = lines_open(sim, job, host, GW_MESSAGE_PULL);
    desk->pushed = gw_memory_zeroed(job->pieces, sizeof(*desk->pushed));
}

static void desk_close(const struct gw_sim_job *job, struct desk *desk)
{
    lines_close(desk->lines, job->spec->worker_count);
    free(desk->pushed);
    desk->lines = NULL;
    desk->pushed = NULL;
}

static void hold_open(struct gw_sim *sim, const struct gw_sim_job *job,
                      struct gw_sim_member *member)
{
    const struct gw_job_spec *spec = job->spec;
    struct hold *hold = gw_memory_zeroed(1, sizeof(*hold));
    *hold = (struct hold){
        .lines = lines_open(sim, job, gw_sim_workers_of(sim, spec)[member->rank], GW_MESSAGE_PUSH),
        .berths = gw_memory_zeroed(job->pieces, sizeof(*hold->berths)),
        .parts = gw_memory_zeroed(job->room, sizeof(*hold->parts)),
        .leaving = gw_memory_zeroed(job->pieces, sizeof(*hold->leaving)),
    };
    member->mover = hold;
}

static void hold_close(const struct gw_sim_job *job, struct gw_sim_member *member)
{
    struct hold *hold = member->mover;
    if (!hold)
        return;
    lines_close(hold->lines, job->spec->server_count);
    free(hold->berths);
    free(hold->parts);
    free(hold->leaving);
    free(hold);
    member->mover = NULL;
}

static int open_job(struct gw_sim *sim, uint32_t index, char *why)
{
    struct gw_sim_job *job = &sim->jobs[index];
    const struct gw_job_spec *spec = job->spec;
    if (sim->scenario->host.payload) {
        snprintf(why, GW_WHY_MAX,
                 "workload: via: what is pushed to servers carries no payload (host.payload)");
        return GW_ERR_INVALID;
    }
    struct shop *shop = gw_memory_zeroed(1, sizeof(*shop));
    shop->lanes = lanes_of(spec);
    shop->desks = gw_memory_zeroed(spec->server_count, sizeof(*shop->desks));
    shop->wares = gw_sim_wares_open(job);
    job->mover = shop;
    for (uint32_t i = 0; i < spec->server_count; i++)
        desk_open(sim, job, &shop->desks[i], gw_sim_servers_of(sim, spec)[i]);
    for (uint32_t rank = 0; rank < spec->worker_count; rank++)
        hold_open(sim, job, gw_sim_member_of(sim, spec, rank));
    return GW_OK;
}

static void close_job(struct gw_sim *sim, uint32_t index)
{
    struct gw_sim_job *job = &sim->jobs[index];
    struct shop *shop = job->mover;
    for (uint32_t rank = 0; shop && rank < job->spec->worker_count; rank++)
        hold_close(job, gw_sim_member_of(sim, job->spec, rank));
    for (uint32_t i = 0; shop && i < job->spec->server_count; i++)
        desk_close(job, &shop->desks[i]);
    if (shop) {
        free(shop->desks);
        free(shop->wares);
    }
    free(shop);
}

/* So many parts of a piece have been pushed. An acknowledgement that comes after the sum, or even
 * in the next round, finds nothing to wait for, or is taken for that round's. */
static void left(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t piece,
                 uint32_t parts, gw_time now)
{
    struct hold *hold = member->mover;
    if (hold->leaving[piece] == 0)
        return;
    hold->leaving[piece] -= parts;
    if (hold->leaving[piece] == 0)
        gw_sim_piece_sent(part, member, hold->berths[piece], now);
}

/* A part of a piece is back. */
static void pulled(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t piece,
                   gw_time now)
{
    struct hold *hold = member->mover;
    uint32_t berth = hold->berths[piece];
    if (member->outcome != GW_FLOW_PENDING || --hold->parts[berth])
        return;
    hold->moving--;
    left(part, member, piece, hold->leaving[piece], now);
    gw_sim_piece_done(part, member, berth, now); /* which may move other pieces */
}

/* A message to be sent, of so many bytes in the round `round`. */
static struct gw_sim_line_message line_message(const struct gw_sim_job *job,
                                               const struct gw_sim_push *message, uint64_t bytes,
                                               uint32_t round)
{
    const struct shop *shop = job->mover;
    return (struct gw_sim_line_message){
        .tag = gw_sim_push_tag(job, message),
        .bytes = bytes,
        .number = message->piece * job->spec->server_count + message->server,
        .round = round,
        .class = shop->wares[message->piece].class,
    };
}

/* A server sends the sum to a worker. */
static void answer(struct gw_sim_part *part, const struct gw_sim_job *job,
                   const struct gw_sim_push *push, uint64_t bytes, gw_time now)
{
    const struct shop *shop = job->mover;
    const struct desk *desk = &shop->desks[push->server];
    struct gw_sim_member *member = gw_sim_member_of(part->sim, job->spec, push->rank);
    struct gw_sim_push pull = *push;
    if (gw_sim_workers_of(part->sim, job->spec)[push->rank] == desk->host) {
        if (member->mover)
            pulled(part, member, push->piece, now);
        return;
    }
    pull.way = GW_MESSAGE_PULL;
    gw_sim_line_send(&desk->lines[push->rank],
                     line_message(job, &pull, bytes, (uint32_t)desk->sums), now);
}

/* A server has what a worker pushed, or as much of it as it wants: the sum is as long as all. */
static void pushed(struct gw_sim_part *part, const struct gw_sim_job *job,
                   const struct gw_sim_push *push, uint64_t bytes, gw_time now)
{
    const struct shop *shop = job->mover;
    struct desk *desk = &shop->desks[push->server];
    if (!desk->lines)
        return; /* it came back without memory of the job */
    if (job->spec->train.is_asynchronous) {
        desk->sums++;
        answer(part, job, push, bytes, now);
        return;
    }
    if (++desk->pushed[push->piece] < job->spec->worker_count)
        return;
    desk->pushed[push->piece] = 0;
    desk->sums++;
    for (uint32_t rank = 0; rank < job->spec->worker_count; rank++) {
        struct gw_sim_push to = *push;
        to.rank = rank;
        answer(part, job, &to, bytes, now);
    }
}

static void push_part(struct gw_sim_part *part, struct gw_sim_member *member,
                      struct gw_sim_push push, uint64_t bytes, gw_time now)
{
    const struct gw_sim_job *job = gw_sim_job_of(part->sim, member);
    const struct shop *shop = job->mover;
    const struct hold *hold = member->mover;
    if (gw_sim_workers_of(part->sim, job->spec)[member->rank] == shop->desks[push.server].host) {
        left(part, member, push.piece, 1, now);
        pushed(part, job, &push, bytes, now);
        return;
    }
    gw_sim_line_send(&hold->lines[push.server], line_message(job, &push, bytes, member->backward),
                     now);
}

static void move(struct gw_sim_part *part, struct gw_sim_member *member, uint32_t berth,
                 gw_time now)
{
    const struct gw_job_spec *spec = gw_sim_job_spec(part->sim, member->job);
    const struct gw_piece piece = member->pieces[berth];
    struct hold *hold = member->mover;
    uint64_t first;
    if (hold->moving++ == 0)
        hold->heard_at = now;
    hold->berths[piece.id] = berth;
    hold->parts[berth] = 0;
    for (uint32_t i = 0; i < spec->server_count; i++)
        hold->parts[berth] += gw_sim_piece_part(spec, &piece, i, &first) > 0;
    hold->leaving[piece.id] = hold->parts[berth];
    for (uint32_t i = 0; i < spec->server_count && member->mover; i++) {
        uint64_t elements = gw_sim_piece_part(spec, &piece, i, &first);
        struct gw_sim_push push = {
            .piece = piece.id, .server = i, .rank = member->rank, .way = GW_MESSAGE_PUSH};
        if (elements)
            push_part(part, member, push, elements * sizeof(float), now);
    }
}

/* A message has been received. */
static void take_note(const struct gw_sim *sim, const struct gw_sim_job *job,
                      const struct gw_sim_push *message, const struct gw_event *event)
{
    const struct shop *shop = job->mover;
    uint32_t host = message->way == GW_MESSAGE_PUSH
                        ? shop->desks[message->server].host
                        : gw_sim_workers_of(sim, job->spec)[message->rank];
    gw_sim_books_received(gw_sim_books_at(job->books, sim, host, message->way),
                          shop->wares[message->piece].class, event);
}

/* An event at a worker. */
static void event_of_member(struct gw_sim_part *part, struct gw_sim_member *member,
                            const struct gw_sim_push *message, const struct gw_event *event,
                            gw_time now)
{
    struct hold *hold = member->mover;
    if (!hold || member->outcome == GW_FLOW_FAILED)
        return;
    hold->heard_at = now;
    if (event->kind == GW_EVENT_FAILED) {
        gw_sim_member_failed(part, member, GW_JOB_SILENT, event->peer, now);
    } else if (event->kind == GW_EVENT_SENT) {
        gw_sim_line_sent(&hold->lines[message->server], event, now);
        left(part, member, message->piece, 1, now);
    } else {
        take_note(part->sim, gw_sim_job_of(part->sim, member), message, event);
        pulled(part, member, message->piece, now);
    }
}

/* An event at a server. A worker that does not answer is noticed by the others. */
static void event_of_desk(struct gw_sim_part *part, const struct gw_sim_job *job,
                          const struct gw_sim_push *message, const struct gw_event *event,
                          gw_time now)
{
    const struct shop *shop = job->mover;
    struct desk *desk = &shop->desks[message->server];
    if (!desk->lines)
        return;
    if (event->kind == GW_EVENT_SENT) {
        gw_sim_line_sent(&desk->lines[message->rank], event, now);
    } else if (event->kind == GW_EVENT_RECEIVED) {
        desk->bytes += event->bytes;
        take_note(part->sim, job, message, event);
        pushed(part, job, message, gw_sim_push_bytes(job, shop->wares, event), now);
    }
}

static void event(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t index,
                  const struct gw_event *event, gw_time now)
{
    const struct gw_sim_job *job = &part->sim->jobs[index];
    const struct gw_sim_push message = gw_sim_push_of(job, event->tag);
    if (node->id == gw_sim_workers_of(part->sim, job->spec)[message.rank])
        event_of_member(part, gw_sim_member_of(part->sim, job->spec, message.rank), &message, event,
                        now);
    else
        event_of_desk(part, job, &message, event, now);
}

static gw_time deadline(const struct gw_sim *sim, const struct gw_sim_member *member)
{
    const struct hold *hold = member->mover;
    gw_time stall = PATIENCE * sim->scenario->host.stall;
    return stall && hold->moving ? hold->heard_at + stall : GW_TIME_NEVER;
}

static void expire(struct gw_sim_part *part, struct gw_sim_member *member, gw_time now)
{
    gw_sim_member_failed(part, member, GW_JOB_STALLED, 0, now);
}

static void member_crashed(struct gw_sim *sim, struct gw_sim_member *member, gw_time now)
{
    const struct gw_sim_job *job = gw_sim_job_of(sim, member);
    hold_close(job, member);
    gw_sim_job_mourn(sim, job, GW_JOB_LOST, member->rank, now);
}

static void servers_crashed(struct gw_sim *sim, uint32_t index, uint32_t place, gw_time now)
{
    const struct gw_sim_job *job = &sim->jobs[index];
    const struct shop *shop = job->mover;
    for (uint32_t i = 0; i < job->spec->server_count; i++) {
        struct desk *desk = &shop->desks[i];
        if (sim->place[desk->host] != place || !desk->lines)
            continue;
        desk_close(job, desk);
        gw_sim_job_mourn(sim, job, GW_JOB_SILENT, desk->host, now);
    }
}

static void results(const struct gw_sim *sim, uint32_t index, struct gw_job_result *result)
{
    const struct gw_sim_job *job = &sim->jobs[index];
    const struct shop *shop = job->mover;
    for (uint32_t i = 0; i < job->spec->server_count; i++) {
        result->server_bytes += shop->desks[i].bytes;
        result->fragments += shop->desks[i].sums;
    }
}

const struct gw_sim_mover_ops gw_sim_mover_push = {
    .name = "push",
    .sends_messages = true,
    .keeps_books = true,
    .bound = gw_sim_push_bound,
    .tells_sent = true,
    .room = room_of,
    .tags = gw_sim_push_tags,
    .demand = add_demand,
    .open = open_job,
    .close = close_job,
    .move = move,
    .event = event,
    .deadline = deadline,
    .expire = expire,
    .member_crashed = member_crashed,
    .servers_crashed = servers_crashed,
    .results = results,
};
