/*
 * RTTs of acknowledged packets, counted when their ACKs reach the sender's host.
 *
 * Each partition counts for itself in bins of 1/64 of the longest base RTT; the last bin has all
 * that is longer, up to the longest of all. Counts add up, so the result does not depend on the
 * partitions.
 */
#include "sim/rtt.h"

#include "topo/memory.h"

enum {
    BINS_PER_BRTT = 64,
    BINS = 64 * BINS_PER_BRTT,
};

static gw_time bin_width(const struct gw_sim *sim)
{
    return sim->scenario->brtt_max / BINS_PER_BRTT + 1;
}

void gw_sim_rtt_open(struct gw_sim_part *part)
{
    if (part->sim->scenario->metrics.rtt)
        part->rtt_counts = gw_memory_aligned(BINS * sizeof(part->rtt_counts[0]));
}

void gw_sim_rtt_add(struct gw_sim_part *part, const struct gw_pkt *ack, gw_time now)
{
    gw_time rtt = now - ack->sent_at;
    uint64_t bin = rtt / bin_width(part->sim);
    part->rtt_counts[bin < BINS ? bin : BINS - 1]++;
    if (part->rtt_max < rtt)
        part->rtt_max = rtt;
}

static uint64_t bin_count(const struct gw_sim *sim, uint32_t bin)
{
    uint64_t count = 0;
    for (uint32_t p = 0; p < sim->part_count; p++)
        count += sim->parts[p].rtt_counts[bin];
    return count;
}

/* No RTT of the bin is longer. */
static gw_time bin_end(const struct gw_sim *sim, uint32_t bin)
{
    gw_time longest = 0, end = (bin + 1) * bin_width(sim) - 1;
    for (uint32_t p = 0; p < sim->part_count; p++)
        if (longest < sim->parts[p].rtt_max)
            longest = sim->parts[p].rtt_max;
    return bin == BINS - 1 || longest < end ? longest : end;
}

gw_time gw_sim_rtt(const struct gw_sim *sim, uint32_t per_mille)
{
    uint64_t total = 0, below = 0;
    if (!sim->scenario->metrics.rtt)
        return 0;
    for (uint32_t bin = 0; bin < BINS; bin++)
        total += bin_count(sim, bin);
    uint64_t rank = (total * per_mille + 999) / 1000;
    for (uint32_t bin = 0; bin < BINS && total; bin++) {
        below += bin_count(sim, bin);
        if (below >= rank && below > 0)
            return bin_end(sim, bin);
    }
    return 0;
}
