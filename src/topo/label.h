/*
 * Labels: the paths of a network as numbers, for source routing.
 *
 * Every switch that has a choice takes one digit of the label as the index into its set of next
 * hops. Which digit depends on the switch's level, the number of links to the nearest host, less
 * one; the base of a digit is the largest set of its level. So in a fat tree the lowest digit is
 * the ToR's uplink, and the next one that of the aggregation switch. Where that would take more
 * than 16 bits, the highest levels have no choice.
 */
#ifndef GW_TOPO_LABEL_H
#define GW_TOPO_LABEL_H

#include "topo/topo.h"

struct gw_topo_labels {
    uint32_t *divisors; /* per switch, [node - host_count]: its digit is label / divisor */
    uint32_t count;     /* labels are below it; at most 65536 */
};

/* From the routes of `topo`, which must not change while labels are in use. */
void gw_topo_labels_init(struct gw_topo_labels *labels, const struct gw_topo *topo);
void gw_topo_labels_fini(struct gw_topo_labels *labels);

/*
 * The order in which packets from `src` to `dst` should use the paths: a cycle of labels in which
 * every path appears in proportion to the rate of its slowest link, as evenly as can be; at any
 * point, each has had its share to within one packet. Rates whose ratios are not small numbers are
 * rounded to 1/64 of the highest. The paths of a host with several links begin with its first link
 * that is up. Returns the length, 0 when there is no path; *schedule is to be freed.
 */
uint32_t gw_topo_schedule(const struct gw_topo *topo, const struct gw_topo_labels *labels,
                          uint32_t src, uint32_t dst, uint16_t **schedule);

#endif
