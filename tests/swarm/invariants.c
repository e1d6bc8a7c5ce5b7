/* Checks of a finished simulation; see invariants.h. */
#include "swarm/invariants.h"

#include <stdio.h>

#include "support.h"

#include "core/job.h"

enum {
    PIECE_MIN = 1024,            /* bytes of a partition, at least */
    STARVED_PERCENT = 50,        /* of the packets were trimmed */
    STALLS = 8,                  /* of a member: joining, in work, leaving, each with the others */
    WORKLOADS = 50,              /* times that the whole workload fits in the limit */
    RESENDS = 4,                 /* of a fragment */
    TIMEOUTS = 100000,           /* base RTTs in the limit: hundreds of the longest timeouts */
    TIMEOUTS_LASTING = 5000,     /* the same when something may never end */
    CONTROL_CAPACITY_MIN = 4096, /* of a control queue, see core/qdisc/lanes.h */
};

#define CERTAIN (UINT64_C(1) << 32)

/* What the checks need to know of a run. */
struct facts {
    const struct gw_scenario *scenario;
    const struct gw_topo *topo;
    const struct gw_flow_result *flows;
    struct gw_sim_totals totals;
    bool *dead;          /* per link: nothing passes from some time on, for ever */
    bool any_dead;       /* some link is */
    bool any_lossy;      /* some fault can take a packet */
    bool any_failed;     /* some flow gave up */
    bool any_down;       /* some fault can change routes */
    bool *crashes;       /* per node: it crashes at some time */
    bool any_crash;      /* some node does */
    uint32_t *distances; /* room for two rows of distances */
};

static uint64_t packets_of(const struct gw_scenario *scenario, uint64_t bytes)
{
    return (bytes + scenario->host.mtu - 1) / scenario->host.mtu;
}

/* Whether messages are blasts: nothing acknowledges their data, and they end at their senders. */
static bool are_blasts(const struct gw_scenario *scenario)
{
    return scenario->transport.cc->on_report != NULL;
}

/* Packets that a message may lack. */
static uint64_t may_lack(const struct gw_scenario *scenario, const struct gw_flow_spec *spec)
{
    uint64_t packets = packets_of(scenario, spec->bytes);
    return packets ? (packets - 1) * (uint64_t)spec->bound / GW_Q16_ONE : 0;
}

static bool fault_is_lasting(const struct gw_fault *fault)
{
    return fault->until == GW_TIME_NEVER;
}

/* Time of the slowest worker's computation. */
static gw_time compute_time(const struct gw_scenario *scenario, const struct gw_job_spec *job)
{
    const struct gw_train_spec *train = &job->train;
    const struct gw_plan *plan = &scenario->workload.plans[train->plan].plan;
    gw_time slowest = (plan->forward + plan->backward) / GW_Q16_ONE + 1;
    return slowest * (gw_time)(GW_Q16_ONE + train->jitter) *
           (gw_time)(train->slowdown / GW_Q16_ONE + 1) * job->iterations;
}

/* Every fragment may be lost a few times, and every member may stall in each of its phases. A piece
 * of a tensor may end with less than a fragment. */
static gw_time job_time(const struct gw_scenario *scenario, const struct gw_job_spec *job,
                        gw_time packet, gw_time stall)
{
    uint64_t tensors = scenario->workload.plans[job->train.plan].plan.tensor_count;
    uint64_t pieces = tensors + job->bytes / PIECE_MIN;
    uint64_t fragments =
        (job->bytes / sizeof(float) / job->values + job->server_count + pieces) * job->iterations;
    /* A message among ranks may wait for others that stall. */
    uint64_t waits =
        job->via == GW_JOB_VIA_CALLS ? tensors * job->worker_count * job->iterations : 0;
    return job->start + (STALLS + waits) * (stall + job->silence) + compute_time(scenario, job) +
           fragments * (RESENDS * job->timeout + WORKLOADS * job->worker_count * packet);
}

gw_time gw_invariants_time_limit(const struct gw_scenario *scenario)
{
    const struct gw_topo *topo = &scenario->topo;
    uint64_t slowest = UINT64_MAX, packets = 0;
    gw_time last = 0, jobs = 0, factor = GW_Q16_ONE;
    bool lasting = false;
    for (uint32_t i = 0; i < topo->link_count; i++)
        for (uint32_t side = 0; side < 2; side++)
            if (topo->links[i].side[side].rate_bps < slowest)
                slowest = topo->links[i].side[side].rate_bps;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct gw_fault *fault = &scenario->faults[i];
        gw_time end = fault_is_lasting(fault) ? fault->at : fault->until;
        last = end > last ? end : last;
        /* What a receiver has forgotten may never be sent again. */
        lasting |= fault_is_lasting(fault) || fault->kind == GW_FAULT_NODE_CRASH;
        if (fault->kind == GW_FAULT_LINK_RATE && (gw_time)fault->factor < factor)
            factor = (gw_time)fault->factor;
    }
    for (uint32_t i = 0; i < scenario->workload.flow_count; i++) {
        const struct gw_flow_spec *flow = &scenario->workload.flows[i];
        packets += packets_of(scenario, flow->bytes) + 1;
        if (flow->start != GW_TIME_NEVER && flow->start > last)
            last = flow->start;
    }
    for (uint32_t i = 0; i < scenario->workload.trigger_count; i++)
        last += scenario->workload.triggers[i].delay;
    gw_time packet = gw_serialisation(gw_byte_time_from_bps(slowest),
                                      scenario->host.mtu + scenario->host.header);
    packet = packet * GW_Q16_ONE / factor;
    for (uint32_t i = 0; i < scenario->workload.job_count; i++)
        jobs += job_time(scenario, &scenario->workload.jobs[i], packet, scenario->host.stall);
    if (scenario->convergence != GW_TIME_NEVER)
        last += scenario->convergence;
    return last + jobs + WORKLOADS * packets * packet +
           scenario->workload.flow_count * scenario->host.stall +
           (lasting ? TIMEOUTS_LASTING : TIMEOUTS) * scenario->brtt_max;
}

/* What faults do, and the links over which nothing passes once all that last have begun. */
static void read_faults(struct facts *facts)
{
    const struct gw_topo *topo = facts->topo;
    uint64_t *chance = calloc(topo->link_count, sizeof(*chance));
    assert_non_null(chance);
    for (uint32_t i = 0; i < facts->scenario->fault_count; i++) {
        const struct gw_fault *fault = &facts->scenario->faults[i];
        bool is_crash = fault->kind == GW_FAULT_NODE_CRASH;
        bool is_node = fault->kind == GW_FAULT_NODE_DOWN || is_crash;
        bool downs = fault->kind == GW_FAULT_LINK_DOWN || is_node;
        bool loses = fault->kind == GW_FAULT_LINK_LOSS || fault->kind == GW_FAULT_LINK_CORRUPT;
        facts->any_down |= downs;
        facts->any_lossy |= downs || loses;
        facts->any_crash |= is_crash;
        if (is_crash)
            facts->crashes[fault->node] = true;
        if (!fault_is_lasting(fault) || (!downs && !loses))
            continue;
        for (uint32_t link = 0; link < topo->link_count; link++) {
            const struct gw_link *l = &topo->links[link];
            bool hit = is_node ? l->side[0].node == fault->node || l->side[1].node == fault->node
                               : link == fault->link;
            if (hit)
                chance[link] += downs ? CERTAIN : fault->chance_q32;
        }
    }
    for (uint32_t link = 0; link < topo->link_count; link++) {
        facts->dead[link] = chance[link] >= CERTAIN;
        facts->any_dead |= facts->dead[link];
    }
    free(chance);
}

/* Links from `host` to every node; UINT32_MAX: none. Hosts do not forward. */
static void measure(const struct facts *facts, uint32_t host, uint32_t *distance)
{
    const struct gw_topo *topo = facts->topo;
    memset(distance, 0xff, topo->node_count * sizeof(*distance));
    distance[host] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < 2 * topo->link_count; i++) {
            const struct gw_link *link = &topo->links[i / 2];
            uint32_t from = link->side[i % 2].node, to = link->side[1 - i % 2].node;
            if (distance[from] == UINT32_MAX || (from < topo->host_count && from != host) ||
                distance[to] <= distance[from] + 1)
                continue;
            distance[to] = distance[from] + 1;
            changed = true;
        }
    }
}

/*
 * Whether packets from `src` to `dst` may need a link that died for good: one of the source's own,
 * whichever it takes, or one that leads nearer to the destination from there on.
 */
static bool may_die(const struct facts *facts, uint32_t src, uint32_t dst)
{
    const struct gw_topo *topo = facts->topo;
    uint32_t *left = facts->distances, *visited = left + topo->node_count;
    measure(facts, dst, left);
    memset(visited, 0, topo->node_count * sizeof(*visited));
    visited[src] = true;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < 2 * topo->link_count; i++) {
            const struct gw_link *link = &topo->links[i / 2];
            uint32_t from = link->side[i % 2].node, to = link->side[1 - i % 2].node;
            if (!visited[from] || (from != src && left[to] + 1 != left[from]))
                continue;
            if (facts->dead[i / 2])
                return true;
            changed |= !visited[to];
            visited[to] = true;
        }
    }
    return false;
}

bool gw_invariants_is_starved(const struct gw_scenario *scenario,
                              const struct gw_sim_totals *totals)
{
    return strcmp(scenario->queue.qdisc->algo.name, "trim") == 0 &&
           totals->trims * 100 > totals->data_packets * STARVED_PERCENT;
}

/* A parameter among the options of an algorithm, or NULL. */
static const void *find_param(const struct gw_algo *algo, const unsigned char *cfg,
                              enum gw_param_type type, const char *name)
{
    for (uint32_t i = 0; i < algo->param_count; i++)
        if (algo->params[i].type == type && strcmp(algo->params[i].name, name) == 0)
            return cfg + algo->params[i].offset;
    return NULL;
}

/* Whether flows take a NACK for a loss. One that asks believes the answer, also if it is to data
 * that was trimmed since. */
static bool believes_nacks(const struct gw_transport *transport)
{
    const struct gw_algo *algo = &transport->loss->algo;
    const bool *nacks = find_param(algo, transport->loss_cfg.bytes, GW_PARAM_BOOL, "nacks");
    return nacks ? *nacks : strcmp(algo->name, "trim") == 0 || strcmp(algo->name, "pfabric") == 0;
}

/* Whether neither windows nor timers give way, as simulators of others can be told: what does not
 * fit is sent again as fast as it was lost, and trimmed headers go before it. */
static bool gives_no_way(const struct gw_scenario *scenario)
{
    const struct gw_transport *transport = &scenario->transport;
    const bool *backs_off =
        find_param(&transport->loss->algo, transport->loss_cfg.bytes, GW_PARAM_BOOL, "back_off");
    return strcmp(transport->cc->algo.name, "fixed") == 0 && backs_off && !*backs_off;
}

/* Why a flow may be unfinished at the end of the run; NULL: for no reason. */
static const char *excuse(const struct facts *facts, uint32_t flow)
{
    const struct gw_flow_spec *spec = &facts->scenario->workload.flows[flow];
    bool waits = spec->start == GW_TIME_NEVER && !facts->flows[flow].started;
    if (waits && facts->any_failed)
        return "waits for the receiver of a flow that failed";
    if (facts->crashes[spec->dst] || (waits && facts->any_crash))
        return "its receiver, or that of a flow that it waits for, has forgotten a part";
    if (gw_invariants_is_starved(facts->scenario, &facts->totals))
        return "trimmed headers take all of a link";
    if (gives_no_way(facts->scenario) && facts->totals.drops)
        return "no flow gives way";
    if (!facts->any_dead)
        return NULL;
    if (facts->scenario->convergence != GW_TIME_NEVER && facts->any_down)
        return "paths may have moved to a dead link";
    if (waits)
        return "waits for a flow that is cut off";
    /* Timers have equal periods, so that flows of one host resend in step, always in one order. */
    if (facts->totals.drops)
        return "flows that are cut off may fill a queue just before it, every time";
    bool cut_off = may_die(facts, spec->src, spec->dst) || may_die(facts, spec->dst, spec->src);
    return cut_off ? "cut off" : NULL;
}

/* Least time of a flow: all that may not be missing leaves the host, the last of it and its ACK
 * cross the network. */
static gw_time least_time(const struct facts *facts, const struct gw_flow_spec *spec)
{
    const struct gw_scenario *scenario = facts->scenario;
    const struct gw_topo *topo = facts->topo;
    uint64_t packets = packets_of(scenario, spec->bytes), fastest = 0, fastest_host = 0;
    if (packets == 0)
        return 0;
    for (uint32_t i = 0; i < 2 * topo->link_count; i++) {
        const struct gw_link_side *side = &topo->links[i / 2].side[i % 2];
        fastest = side->rate_bps > fastest ? side->rate_bps : fastest;
        if (side->node == spec->src && side->rate_bps > fastest_host)
            fastest_host = side->rate_bps;
    }
    measure(facts, spec->src, facts->distances);
    uint32_t hops = facts->distances[spec->dst];
    uint32_t last = (uint32_t)(spec->bytes - (packets - 1) * scenario->host.mtu);
    packets -= may_lack(scenario, spec);
    gw_byte_time host = gw_byte_time_from_bps(fastest_host), link = gw_byte_time_from_bps(fastest);
    uint32_t header = scenario->host.header;
    gw_time sending = (packets - 1) * gw_serialisation(host, scenario->host.mtu + header) +
                      gw_serialisation(host, last + header);
    gw_time crossing = (hops - 1) * gw_serialisation(link, last + header);
    return sending + crossing + hops * gw_serialisation(link, header) +
           2 * hops * gw_topo_latency_min(topo);
}

static void check_flow(const struct facts *facts, uint32_t flow)
{
    const struct gw_scenario *scenario = facts->scenario;
    const struct gw_flow_spec *spec = &scenario->workload.flows[flow];
    const struct gw_flow_result *result = &facts->flows[flow];
    if (result->outcome == GW_FLOW_PENDING) {
        if (!spec->background && !excuse(facts, flow))
            fail_msg("flow %u of %u bytes is unfinished and nothing is in its way%s", flow,
                     (unsigned)spec->bytes, result->started ? "" : "; it was not started");
        return;
    }
    bool crashed = facts->crashes[spec->src] || facts->crashes[spec->dst];
    if (!result->started && !facts->crashes[spec->src])
        fail_msg("flow %u ended without a start", flow);
    if (result->received && result->missing > may_lack(scenario, spec))
        fail_msg("flow %u lacks %u packets", flow, result->missing);
    if (result->outcome == GW_FLOW_DONE && result->missing_at_end > may_lack(scenario, spec))
        fail_msg("flow %u ended without %u packets", flow, result->missing_at_end);
    if (result->outcome == GW_FLOW_DONE && spec->bytes > 0 && !result->received &&
        !are_blasts(scenario))
        fail_msg("flow %u is done and was not received", flow);
    if (result->outcome == GW_FLOW_FAILED && scenario->host.stall == 0 && !crashed)
        fail_msg("flow %u failed although flows may stall for ever", flow);
    if (spec->start != GW_TIME_NEVER && result->start < spec->start)
        fail_msg("flow %u started too early", flow);
    if (result->end < result->start || result->end >= facts->totals.end)
        fail_msg("flow %u ended before its start or after the run", flow);
    gw_time took = result->end - result->start;
    if (result->outcome == GW_FLOW_FAILED && took < scenario->host.stall && !crashed)
        fail_msg("flow %u failed before it can have stalled", flow);
    if (result->outcome == GW_FLOW_DONE && took < least_time(facts, spec))
        fail_msg("flow %u took %llu ps, less than the %llu ps that are possible", flow,
                 (unsigned long long)took, (unsigned long long)least_time(facts, spec));
}

/* Whether jobs move their gradients by flows, which are not in the list of flows. */
static bool any_job_has_flows(const struct gw_workload *workload)
{
    for (uint32_t i = 0; i < workload->job_count; i++)
        if (workload->jobs[i].via == GW_JOB_VIA_PUSH || workload->jobs[i].via == GW_JOB_VIA_COLL ||
            workload->jobs[i].via == GW_JOB_VIA_CALLS)
            return true;
    return false;
}

static bool any_makes_calls(const struct gw_workload *workload)
{
    return workload->call_count > 0;
}

/* Totals that are sums over the flows. */
static void check_sums(const struct facts *facts)
{
    const struct gw_workload *workload = &facts->scenario->workload;
    const struct gw_sim_totals *totals = &facts->totals;
    uint64_t retransmits = 0, packets = 0;
    uint32_t awaited = 0, completed = 0;
    bool all_done = true, all_ended = true, any_lacks = are_blasts(facts->scenario);
    gw_time first = GW_TIME_NEVER, last = 0;
    for (uint32_t i = 0; i < workload->flow_count; i++) {
        const struct gw_flow_result *result = &facts->flows[i];
        all_done &= result->outcome == GW_FLOW_DONE;
        all_ended &= result->outcome != GW_FLOW_PENDING || !result->started;
        retransmits += result->retransmits;
        packets += packets_of(facts->scenario, workload->flows[i].bytes) -
                   may_lack(facts->scenario, &workload->flows[i]);
        any_lacks |= workload->flows[i].bound > 0;
        if (workload->flows[i].background)
            continue;
        awaited++;
        completed += result->outcome == GW_FLOW_DONE;
        if (result->outcome == GW_FLOW_PENDING)
            continue;
        first = result->start < first ? result->start : first;
        last = result->end > last ? result->end : last;
    }
    assert_int_equal(totals->flows, awaited);
    assert_int_equal(totals->completed, completed);
    assert_true(totals->completion == (first == GW_TIME_NEVER ? 0 : last - first));
    if (any_lacks) { /* what is sent again may be what is then enough */
        assert_true(!all_done || totals->data_packets >= packets);
        return;
    }
    if (any_job_has_flows(workload)) {
        assert_true(totals->retransmits >= retransmits);
        assert_true(!all_done || totals->data_packets >= packets + retransmits);
        return;
    }
    assert_true(all_ended ? totals->retransmits == retransmits
                          : totals->retransmits >= retransmits);
    if (all_done && totals->data_packets != packets + retransmits)
        fail_msg("%llu data packets were sent, not %llu", (unsigned long long)totals->data_packets,
                 (unsigned long long)(packets + retransmits));
}

/* A parameter of the queue discipline, by name; 0 when it has none. */
static gw_q16 queue_q16(const struct gw_scenario *scenario, const char *name)
{
    const void *at =
        find_param(&scenario->queue.qdisc->algo, scenario->queue.cfg.bytes, GW_PARAM_Q16, name);
    gw_q16 value = 0;
    if (at)
        memcpy(&value, at, sizeof(value));
    return value;
}

/* Whether the control queue of every port would hold all control packets of the run at once. */
static bool control_always_fits(const struct facts *facts)
{
    const struct gw_scenario *scenario = facts->scenario;
    uint64_t least = scenario->queue.capacity;
    for (uint32_t i = 0; i < 2 * facts->topo->link_count; i++) {
        uint32_t own = facts->topo->links[i / 2].side[i % 2].queue_bytes;
        least = own && own < least ? own : least;
    }
    uint64_t control = (uint64_t)gw_q16_mul(queue_q16(scenario, "control"), (gw_q16)least);
    control = control > CONTROL_CAPACITY_MIN ? control : CONTROL_CAPACITY_MIN;
    return 2 * facts->totals.data_packets * scenario->host.header <= control;
}

/* Whether control, which is never held back, may be more than a link carries: that of jobs repeats
 * itself by the clock, and the credits of all other hosts for one sender may have more bytes than
 * its data. */
static bool control_may_crowd(const struct facts *facts)
{
    const struct gw_scenario *scenario = facts->scenario;
    uint64_t credits = (uint64_t)facts->topo->host_count * scenario->host.header;
    return scenario->workload.job_count > 0 ||
           (scenario->transport.grant && credits > scenario->host.mtu + scenario->host.header);
}

/* Ranks that have a part in a call. */
static uint32_t parties(const struct gw_job_spec *job, const struct gw_call_spec *call)
{
    if (call->kind == GW_CALL_SEND)
        return 2;
    bool is_value = call->kind == GW_CALL_PUSH || call->kind == GW_CALL_PULL;
    return is_value && call->rank != GW_CALL_RANKS_ALL ? 1 : job->worker_count;
}

/* Every call of a job that is done has ended everywhere; only pushes and pulls can be refused. What
 * calls brought is checked by the simulator. */
static void check_calls(const struct facts *facts, const struct gw_sim *sim, uint32_t index,
                        bool is_done)
{
    const struct gw_job_spec *job = &facts->scenario->workload.jobs[index];
    const struct gw_call_spec *calls = facts->scenario->workload.calls + job->first_call;
    struct gw_call_result result;
    for (uint32_t i = 0; gw_sim_call(sim, index, i, &result); i++) {
        uint64_t all = (uint64_t)parties(job, &calls[i]) * job->iterations;
        uint64_t ended = result.done + result.refused;
        if (ended > all || (is_done && ended < all))
            fail_msg("job %u: call %u ended %llu times of %llu", index, i,
                     (unsigned long long)ended, (unsigned long long)all);
        bool is_value = calls[i].kind == GW_CALL_PUSH || calls[i].kind == GW_CALL_PULL;
        assert_true(is_value || result.refused == 0);
        assert_true(result.longest * result.done >= result.total);
    }
}

/* Every member of a job ends, and one that fails says why. */
static void check_jobs(const struct facts *facts, const struct gw_sim *sim)
{
    enum {
        JOBS_MAX = 8,
    };
    struct gw_job_result results[JOBS_MAX];
    uint32_t count = gw_sim_jobs(sim, results, JOBS_MAX), completed = 0;
    assert_true(count <= JOBS_MAX && count == facts->scenario->workload.job_count);
    for (uint32_t i = 0; i < count; i++) {
        const struct gw_job_spec *spec = &facts->scenario->workload.jobs[i];
        const struct gw_job_result *job = &results[i];
        completed += job->completed;
        if (job->completed + job->failed != spec->worker_count)
            fail_msg("job %u: of %u members, %u are done and %u failed", i, spec->worker_count,
                     job->completed, job->failed);
        if (job->failed && (job->reason == GW_JOB_OK || job->reason >= GW_JOB_REASONS))
            fail_msg("job %u failed with reason %u", i, job->reason);
        if (job->completed == spec->worker_count && job->iterations != spec->iterations)
            fail_msg("job %u is done after %u of %u iterations", i, job->iterations,
                     spec->iterations);
        check_calls(facts, sim, i, job->completed == spec->worker_count);
        if (job->completed && (job->start < spec->start || job->end < job->start))
            fail_msg("job %u was done before it started", i);
    }
    assert_int_equal(completed, facts->totals.members_completed);
}

/* The books by class agree with the whole, and only who drops by worth sheds. */
static void check_classes(const struct facts *facts)
{
    const struct gw_class_losses *losses = facts->totals.losses;
    bool sheds = facts->scenario->queue.qdisc->drops_early;
    uint64_t drops = 0;
    for (uint32_t i = 0; i < GW_CLASSES; i++) {
        drops += losses[i].drops;
        assert_true(losses[i].unimportant <= losses[i].drops);
        assert_true(losses[i].shed <= (sheds ? losses[i].unimportant : 0));
    }
    assert_true(drops == facts->totals.drops);
    assert_true(losses[GW_CLASS_CONTROL].drops == facts->totals.control_drops);
    assert_true(losses[GW_CLASS_CONTROL].shed == 0);
}

static void check_losses(const struct facts *facts)
{
    const struct gw_scenario *scenario = facts->scenario;
    const struct gw_sim_totals *totals = &facts->totals;
    bool trims = strcmp(scenario->queue.qdisc->algo.name, "trim") == 0;
    bool asks = strcmp(scenario->transport.loss->algo.name, "pfabric") == 0;
    bool believes = believes_nacks(&scenario->transport);
    check_classes(facts);
    if (!trims)
        assert_true(totals->trims == 0);
    else if (scenario->queue.shared.bytes == 0 && totals->link_copies == 0 &&
             scenario->workload.job_count == 0 && /* gradients cannot be trimmed, nor blasts, */
             !are_blasts(scenario) && !scenario->pcn.enable && /* nor notices of bursts */
             control_always_fits(facts))
        assert_true(totals->drops == 0);
    if (!facts->any_lossy)
        assert_true(totals->link_losses == 0);
    /* The headroom is that of the links as they were built, and of PAUSEs that arrive. */
    if (scenario->queue.lossless && scenario->fault_count == 0)
        assert_true(totals->trims == 0 &&
                    totals->drops == (control_may_crowd(facts) ? totals->control_drops : 0));
    if (!scenario->queue.lossless)
        assert_true(totals->pauses == 0 && totals->paused == 0);
    if (!facts->any_down || scenario->convergence == GW_TIME_NEVER)
        assert_true(totals->unroutable == 0);
    if (strcmp(scenario->queue.qdisc->algo.name, "fifo") == 0)
        assert_true(totals->marks == 0);
    /* Each retransmission has a cause, and each needless one was caused by a timer, or by later
     * arrivals where these count. */
    uint64_t guesses = totals->timeouts + totals->overtaken + totals->probes;
    bool refuses = any_makes_calls(&scenario->workload); /* what finds no memory is sent again */
    if (!refuses && !are_blasts(scenario)) /* whose receivers ask for what is missing */
        assert_true(totals->retransmits <= guesses + (believes ? totals->trims : 0));
    if (totals->link_copies == 0 &&
        !refuses) /* else a copy may have been trimmed, and the other not */
        assert_true(totals->spurious <= guesses);
    if (!scenario->transport.loss->on_delivery)
        assert_true(totals->overtaken == 0 && (asks || totals->probes == 0));
    if (!facts->any_crash)
        assert_true(totals->crash_losses == 0);
}

/* What switches make of announcements: no port is low for longer than promised. Their books are the
 * simulator's own audit. */
static void check_notices(const struct facts *facts, const struct gw_sim *sim)
{
    const struct gw_pcn_cfg *pcn = &facts->scenario->pcn;
    struct gw_notice_totals totals = gw_sim_notices(sim);
    const struct gw_switch_notice_stats *switches = &totals.at_switches;
    if (!pcn->enable) {
        assert_true(totals.announced + totals.unannounced + switches->notices == 0);
        return;
    }
    gw_time share = (gw_time)gw_q16_mul((gw_q16)facts->totals.end, pcn->share);
    assert_true(totals.lowered_most <= share + pcn->save + pcn->jobs * pcn->hold);
    assert_true(totals.unanswered <= totals.announced);
    assert_true(totals.announced || switches->notices == 0);
    uint64_t closed = switches->heads + switches->recoveries + switches->moved + switches->dropped;
    assert_true(switches->repeated + switches->refused + switches->no_room + closed <=
                switches->notices);
}

/* What a sample is about is there. */
static void check_subject(const struct facts *facts, const struct gw_sample *sample)
{
    const struct gw_workload *workload = &facts->scenario->workload;
    switch (sample->series) {
    case GW_SERIES_CWND:
    case GW_SERIES_RATE:
        assert_true(sample->subject < workload->flow_count);
        break;
    case GW_SERIES_GOODPUT:
    case GW_SERIES_SWITCH_SUMS:
    case GW_SERIES_SERVER_SUMS:
        assert_true(sample->subject < workload->job_count);
        break;
    case GW_SERIES_QUEUE:
    case GW_SERIES_COLLISIONS:
        assert_true(sample->subject >= facts->topo->host_count &&
                    sample->subject < facts->topo->node_count);
        assert_true(sample->port < facts->topo->nodes[sample->subject].port_count);
    }
}

static void check_samples(const struct facts *facts, const struct gw_sim *sim)
{
    uint64_t count;
    const struct gw_sample *samples = gw_sim_samples(sim, &count);
    gw_time interval = facts->scenario->metrics.sample;
    assert_true(interval != 0 || count == 0);
    for (uint64_t i = 0; i < count; i++) {
        const struct gw_sample *sample = &samples[i];
        assert_true(sample->at % interval == 0 && sample->at < facts->totals.end);
        if (i > 0)
            assert_true(sample[-1].at < sample->at ||
                        (sample[-1].at == sample->at && sample[-1].series <= sample->series));
        check_subject(facts, sample);
    }
}

void gw_invariants_check(const struct gw_scenario *scenario, const struct gw_sim *sim)
{
    struct facts facts = {
        .scenario = scenario,
        .topo = &scenario->topo,
        .flows = gw_sim_flows(sim),
        .totals = gw_sim_totals(sim),
        .dead = calloc(scenario->topo.link_count, sizeof(bool)),
        .crashes = calloc(scenario->topo.node_count, sizeof(bool)),
        .distances = calloc(2 * scenario->topo.node_count, sizeof(uint32_t)),
    };
    assert_non_null(facts.dead);
    assert_non_null(facts.crashes);
    assert_non_null(facts.distances);
    read_faults(&facts);
    for (uint32_t i = 0; i < scenario->workload.flow_count; i++)
        facts.any_failed |= facts.flows[i].outcome == GW_FLOW_FAILED;
    for (uint32_t i = 0; i < scenario->workload.flow_count; i++)
        check_flow(&facts, i);
    check_sums(&facts);
    check_jobs(&facts, sim);
    check_losses(&facts);
    check_notices(&facts, sim);
    check_samples(&facts, sim);
    free(facts.distances);
    free(facts.crashes);
    free(facts.dead);
}
