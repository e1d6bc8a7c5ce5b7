/* Thresholds tried out; see drop_trial.h. */
#include "workload/model/drop_trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/error.h"
#include "core/qdisc/qdisc.h"
#include "topo/memory.h"

enum {
    PARTS = 32,              /* of a run, whose losses are compared for the error */
    PACKETS_MAX = 1 << 20,   /* that wait at a time */
    PACKETS_SPARE = 1 << 12, /* for queues full of packets that happen to be small */
    SERIES = 20,             /* terms: ln(2)^20 / 20! is below 2^-64 */
    LIST_MAX = 256,          /* characters of a list of sizes */
};

#define LN2  0.693147180559945309417
#define NONE 1e300 /* a time that does not come */

/* A port that sends a mean packet in a unit of time. */
struct trial {
    const struct gw_drop_port *port;
    const struct gw_qdisc_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t memory[GW_QDISC_STATE_MAX / sizeof(uint64_t)];
    struct gw_pkt_pool pool;
    struct gw_qdisc_port outside;
    struct gw_prng prng;
    double series[SERIES];            /* sums of ln(2)^i / i! from i = 1 on */
    double total;                     /* load of all queues */
    double until[GW_DROP_QUEUES_MAX]; /* part of the arrivals for the queues up to this one */
    struct gw_drop_trial *part;       /* of the run, that is going on */
};

/* Between 0 and 1. */
static double uniform(struct trial *trial)
{
    return ((double)(gw_prng_next(&trial->prng) >> 12) + 0.5) / 4503599627370496.0;
}

/*
 * With the mean 1, by sums and comparisons alone (Knuth, The Art of Computer Programming, volume 2,
 * section 3.4.1, algorithm S): the whole multiples of ln 2 are geometric, and the rest is the least
 * of so many uniform numbers as the series decides.
 */
static double exponential(struct trial *trial)
{
    double whole = 0, u = uniform(trial);
    for (; u < 0.5; u *= 2)
        whole += LN2;
    u = 2 * u - 1;
    if (u < LN2)
        return whole + u;
    double least = uniform(trial);
    for (uint32_t i = 1; i < SERIES; i++) {
        double other = uniform(trial);
        least = other < least ? other : least;
        if (u < trial->series[i])
            break;
    }
    return whole + least * LN2;
}

static void set_list(struct trial *trial, const char *name, const uint64_t *bytes)
{
    char text[LIST_MAX];
    size_t used = 0;
    for (uint32_t q = 0; q < trial->port->queues; q++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRIu64, q ? "," : "",
                                 bytes[q]);
    GW_ASSERT(gw_algo_set(&trial->ops->algo, &trial->cfg, name, text) == GW_OK);
}

static void open_port(struct trial *trial, const struct gw_drop_plan *plan, struct gw_pkt *packets,
                      uint32_t count)
{
    uint64_t thresholds[GW_DROP_QUEUES_MAX], limits[GW_DROP_QUEUES_MAX];
    trial->ops = (const void *)gw_registry_find(&gw_qdisc_registry, "dlcp");
    gw_algo_defaults(&trial->ops->algo, &trial->cfg);
    for (uint32_t q = 0; q < trial->port->queues; q++) {
        thresholds[q] = plan->queues[q].threshold;
        limits[q] = plan->queues[q].limit;
        trial->total += trial->port->loads[q];
        trial->until[q] = trial->total;
    }
    for (uint32_t q = 0; q < trial->port->queues; q++)
        trial->until[q] /= trial->total;
    set_list(trial, "thresholds", thresholds);
    set_list(trial, "limits", limits);
    gw_pkt_pool_init(&trial->pool, packets, 0, count, NULL);
    trial->outside = (struct gw_qdisc_port){.pool = &trial->pool, .prng = &trial->prng};
    trial->ops->init(trial->memory, &trial->cfg, UINT32_MAX);
}

/* What was dropped by worth or marked met more than S, what was dropped without regard to it more
 * than L. */
static void count(struct gw_drop_trial *part, uint32_t q, uint32_t kind,
                  enum gw_qdisc_verdict verdict, enum gw_ecn ecn)
{
    bool over = verdict != GW_QDISC_QUEUED || ecn == GW_ECN_CE;
    bool beyond = verdict == GW_QDISC_DROPPED;
    for (uint32_t k = 0; k < GW_DROP_KINDS; k++) {
        part->either[q][k].arrived++;
        part->either[q][k].lost += k == GW_DROP_SMALL ? over : beyond;
    }
    part->queues[q][kind].arrived++;
    part->queues[q][kind].lost += verdict != GW_QDISC_QUEUED;
}

static void arrive(struct trial *trial)
{
    const struct gw_drop_port *port = trial->port;
    struct gw_pkt *victim, *pkt = gw_pkt_claim(&trial->pool);
    uint32_t q = 0;
    GW_ASSERT(pkt);
    for (double place = uniform(trial); q + 1 < port->queues && place >= trial->until[q];)
        q++;
    uint32_t kind = uniform(trial) < port->small ? GW_DROP_SMALL : GW_DROP_LARGE;
    double size = exponential(trial) * port->packet;
    pkt->q = (struct gw_qpkt){.size = (uint32_t)size + 1,
                              .class = (GW_CLASS_DATA_MAX - q) & GW_CLASS_CONTROL,
                              .ecn = kind == GW_DROP_SMALL ? GW_ECN_NOT_ECT : GW_ECN_ECT0};
    enum gw_qdisc_verdict verdict =
        trial->ops->enqueue(trial->memory, &trial->cfg, &trial->outside, pkt, UINT64_MAX, &victim);
    count(trial->part, q, kind, verdict, pkt->q.ecn);
    if (verdict != GW_QDISC_QUEUED)
        gw_pkt_release(&trial->pool, victim);
}

/* Where a part of the run ends the next one begins. */
struct clock {
    double next; /* arrival */
    double done; /* end of what is being sent */
};

static void run_part(struct trial *trial, struct clock *clock, uint64_t arrivals)
{
    while (arrivals > 0) {
        double now = clock->next < clock->done ? clock->next : clock->done;
        bool idle = clock->done >= NONE;
        if (clock->next <= now) {
            arrive(trial);
            clock->next = now + exponential(trial) / trial->total;
            arrivals--;
            if (!idle)
                continue;
        }
        struct gw_pkt *pkt = trial->ops->dequeue(trial->memory, &trial->cfg, &trial->outside);
        clock->done = pkt ? now + (double)pkt->q.size / trial->port->packet : NONE;
        if (pkt)
            gw_pkt_release(&trial->pool, pkt);
    }
    /* Times count from here, so that they stay exact however long the run. */
    if (clock->done < NONE)
        clock->done -= clock->next;
    clock->next = 0;
}

/* Square root by Newton's method, from above. */
static double root(double x)
{
    double y = x > 1 ? x : 1, last = y + 1;
    while (x > 0 && y < last) {
        last = y;
        y = (y + x / y) / 2;
    }
    return x > 0 ? y : 0;
}

/* The loss, and its error from how far the parts of the run lie apart. `first` is of the first. */
static struct gw_drop_seen sum_up(const struct gw_drop_seen *first)
{
    const size_t stride = sizeof(struct gw_drop_trial) / sizeof(*first);
    struct gw_drop_seen sum = {0};
    for (uint32_t i = 0; i < PARTS; i++) {
        sum.arrived += first[i * stride].arrived;
        sum.lost += first[i * stride].lost;
    }
    if (sum.arrived == 0)
        return sum;
    sum.loss = (double)sum.lost / (double)sum.arrived;
    double squares = 0;
    for (uint32_t i = 0; i < PARTS; i++) {
        double off = (double)first[i * stride].lost - sum.loss * (double)first[i * stride].arrived;
        squares += off * off;
    }
    sum.error = root(squares * PARTS / (PARTS - 1)) / (double)sum.arrived;
    return sum;
}

int gw_drop_trial_run(struct gw_drop_trial *trial, const struct gw_drop_plan *plan,
                      const struct gw_drop_port *port, uint64_t arrivals, uint64_t seed, char *why,
                      uint32_t why_size)
{
    struct gw_drop_trial parts[PARTS] = {0};
    struct trial run = {.port = port, .prng = gw_prng_derive(seed, 0)};
    struct clock clock = {.done = NONE};
    uint64_t room = PACKETS_SPARE;
    for (uint32_t q = 0; q < port->queues; q++)
        room += 2 * (plan->queues[q].limit / port->packet);
    if (room > PACKETS_MAX) {
        snprintf(why, why_size, "the limits hold more than %d packets: too many to try out",
                 PACKETS_MAX / 2);
        return GW_ERR_RANGE;
    }
    double term = 1;
    for (uint32_t i = 0; i < SERIES; i++) {
        term *= LN2 / (i + 1);
        run.series[i] = term + (i ? run.series[i - 1] : 0);
    }
    struct gw_pkt *packets = gw_memory_zeroed(room, sizeof(*packets));
    open_port(&run, plan, packets, (uint32_t)room);
    for (uint64_t i = 0; i < PARTS; i++) {
        run.part = &parts[i];
        run_part(&run, &clock, arrivals * (i + 1) / PARTS - arrivals * i / PARTS);
    }
    free(packets);
    for (uint32_t q = 0; q < port->queues; q++)
        for (uint32_t kind = 0; kind < GW_DROP_KINDS; kind++) {
            trial->queues[q][kind] = sum_up(&parts[0].queues[q][kind]);
            trial->either[q][kind] = sum_up(&parts[0].either[q][kind]);
        }
    return GW_OK;
}
