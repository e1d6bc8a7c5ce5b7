/*
 * The mover of push and pull: every worker pushes its gradients to servers as messages, and a
 * server answers with the sum, as a message of the same size, when all have pushed; or, without
 * synchrony, with what it has as soon as one has pushed. Servers may be on workers' hosts
 * (BytePS' N-to-N); what stays on a host passes no network and takes no time.
 *
 * A piece up to job.whole bytes belongs to one server, in turn by its number; larger ones are
 * divided evenly among all. Messages between a worker and a server go over lines
 * (message_line.h), one each way.
 *
 * Messages carry no payload, so a server counts: it answers when it has as many pushes of a piece
 * as there are workers. A worker pushes the piece again only when it has the answer, and nobody has
 * it before all have pushed; so rounds never mix, and every sum has every worker once.
 *
 * Workers choose the order of their pieces by themselves, so a piece may wait for others without
 * limit: a worker has room for all, and its schedule's credit back when a piece was pushed.
 *
 * A server that dies takes the parameters with it, so the job ends, as it does when a worker dies:
 * members learn of it after job.silence, as from connections that break.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/error.h"
#include "sim/message_line.h"
#include "sim/mover.h"
#include "sim/notices.h"
#include "topo/memory.h"

enum {
    LANES_DEFAULT = 4, /* with two, both wait for their last ACKs together: they share the link */
    PATIENCE = 2,      /* times host.stall, without news: longer than a message takes to fail */
    PUSH = 0,
    PULL = 1,
    WAYS = 2,
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
    struct desk *desks; /* one per server */
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

/* What a tag says. */
struct message {
    uint32_t piece;
    uint32_t server;
    uint32_t rank;
    uint32_t way; /* PUSH or PULL */
};

static uint32_t tag_of(const struct gw_sim_job *job, const struct message *message)
{
    uint32_t at = message->piece * job->spec->server_count + message->server;
    return job->first_tag + (at * job->spec->worker_count + message->rank) * WAYS + message->way;
}

static struct message read_tag(const struct gw_sim_job *job, uint32_t tag)
{
    uint32_t at = (tag - job->first_tag) / WAYS;
    return (struct message){
        .way = (tag - job->first_tag) % WAYS,
        .rank = at % job->spec->worker_count,
        .server = at / job->spec->worker_count % job->spec->server_count,
        .piece = at / job->spec->worker_count / job->spec->server_count,
    };
}

static uint32_t room_of(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t pieces)
{
    (void)sim;
    (void)spec;
    return pieces;
}

static uint64_t tags_of(const struct gw_sim *sim, const struct gw_job_spec *spec, uint32_t room)
{
    const struct gw_plan *plan = &sim->scenario->workload.plans[spec->train.plan].plan;
    (void)room;
    return (uint64_t)WAYS * gw_sim_pieces_of(spec, plan) * spec->server_count * spec->worker_count;
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

static struct gw_sim_line *lines_open(const struct gw_sim *sim, const struct gw_sim_job *job,
                                      uint32_t from, const uint32_t *to, uint32_t count)
{
    const struct shop *shop = job->mover;
    struct gw_sim_line *lines = gw_memory_zeroed(count, sizeof(*lines));
    for (uint32_t i = 0; i < count; i++) {
        if (to[i] == from)
            continue;
        gw_sim_line_open(&lines[i], sim, from, to[i], shop->lanes);
        lines[i].notice = gw_sim_notices_of_job(sim, job->spec);
    }
    return lines;
}

static void lines_close(struct gw_sim_line *lines, uint32_t count)
{
    for (uint32_t i = 0; lines && i < count; i++)
        gw_sim_line_close(&lines[i]);
    free(lines);
}

static void desk_open(const struct gw_sim *sim, const struct gw_sim_job *job, struct desk *desk,
                      uint32_t host)
{
    desk->host = host;
    desk->lines =
        lines_open(sim, job, host, gw_sim_workers_of(sim, job->spec), job->spec->worker_count);
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
        .lines = lines_open(sim, job, gw_sim_workers_of(sim, spec)[member->rank],
                            gw_sim_servers_of(sim, spec), spec->server_count),
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
    if (shop)
        free(shop->desks);
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

/* A server sends the sum to a worker. */
static void answer(struct gw_sim_part *part, const struct gw_sim_job *job,
                   const struct message *push, struct gw_sim_line_message sum, gw_time now)
{
    const struct shop *shop = job->mover;
    const struct desk *desk = &shop->desks[push->server];
    struct gw_sim_member *member = gw_sim_member_of(part->sim, job->spec, push->rank);
    struct message pull = *push;
    if (gw_sim_workers_of(part->sim, job->spec)[push->rank] == desk->host) {
        if (member->mover)
            pulled(part, member, push->piece, now);
        return;
    }
    pull.way = PULL;
    sum.tag = tag_of(job, &pull);
    gw_sim_line_send(&desk->lines[push->rank], sum, now);
}

/* A server has what a worker pushed. */
static void pushed(struct gw_sim_part *part, const struct gw_sim_job *job,
                   const struct message *push, uint64_t bytes, gw_time now)
{
    const struct shop *shop = job->mover;
    struct desk *desk = &shop->desks[push->server];
    const struct gw_sim_line_message sum = {.bytes = bytes};
    if (!desk->lines)
        return; /* it came back without memory of the job */
    if (job->spec->train.is_asynchronous) {
        desk->sums++;
        answer(part, job, push, sum, now);
        return;
    }
    if (++desk->pushed[push->piece] < job->spec->worker_count)
        return;
    desk->pushed[push->piece] = 0;
    desk->sums++;
    for (uint32_t rank = 0; rank < job->spec->worker_count; rank++) {
        struct message to = *push;
        to.rank = rank;
        answer(part, job, &to, sum, now);
    }
}

static void push_part(struct gw_sim_part *part, struct gw_sim_member *member, struct message push,
                      uint64_t bytes, gw_time now)
{
    const struct gw_sim_job *job = gw_sim_job_of(part->sim, member);
    const struct shop *shop = job->mover;
    const struct hold *hold = member->mover;
    if (gw_sim_workers_of(part->sim, job->spec)[member->rank] == shop->desks[push.server].host) {
        left(part, member, push.piece, 1, now);
        pushed(part, job, &push, bytes, now);
        return;
    }
    struct gw_sim_line_message message = {.tag = tag_of(job, &push), .bytes = bytes};
    gw_sim_line_send(&hold->lines[push.server], message, now);
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
        struct message push = {.piece = piece.id, .server = i, .rank = member->rank, .way = PUSH};
        if (elements)
            push_part(part, member, push, elements * sizeof(float), now);
    }
}

/* An event at a worker. */
static void event_of_member(struct gw_sim_part *part, struct gw_sim_member *member,
                            const struct message *message, const struct gw_event *event,
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
        pulled(part, member, message->piece, now);
    }
}

/* An event at a server. A worker that does not answer is noticed by the others. */
static void event_of_desk(struct gw_sim_part *part, const struct gw_sim_job *job,
                          const struct message *message, const struct gw_event *event, gw_time now)
{
    const struct shop *shop = job->mover;
    struct desk *desk = &shop->desks[message->server];
    if (!desk->lines)
        return;
    if (event->kind == GW_EVENT_SENT) {
        gw_sim_line_sent(&desk->lines[message->rank], event, now);
    } else if (event->kind == GW_EVENT_RECEIVED) {
        desk->bytes += event->bytes;
        pushed(part, job, message, event->bytes, now);
    }
}

static void event(struct gw_sim_part *part, struct gw_sim_node *node, uint32_t index,
                  const struct gw_event *event, gw_time now)
{
    const struct gw_sim_job *job = &part->sim->jobs[index];
    const struct message message = read_tag(job, event->tag);
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
    .tells_sent = true,
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
    .servers_crashed = servers_crashed,
    .results = results,
};
