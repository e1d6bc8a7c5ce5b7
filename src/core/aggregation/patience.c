/* How long the server waits; see patience.h. */
#include "core/aggregation/patience.h"

#include "base/assert.h"

enum {
    DEVIATIONS = 4, /* RFC 6298, section 2, as are the next two */
    MEAN_SHIFT = 3,
    DEVIATION_SHIFT = 2,
};

void gw_patience_init(struct gw_patience *patience, gw_time least, gw_time most)
{
    GW_ASSERT(least <= most);
    *patience = (struct gw_patience){.least = least, .most = most};
}

void gw_patience_note(struct gw_patience *patience, gw_time waited)
{
    gw_time most = 2 * gw_patience_of(patience);
    if (waited > most)
        waited = most;
    if (waited == 0)
        waited = 1;
    if (patience->mean == 0) {
        patience->mean = waited;
        patience->deviation = waited / 2;
        return;
    }
    gw_time apart = waited > patience->mean ? waited - patience->mean : patience->mean - waited;
    patience->deviation += (apart >> DEVIATION_SHIFT) - (patience->deviation >> DEVIATION_SHIFT);
    patience->mean += (waited >> MEAN_SHIFT) - (patience->mean >> MEAN_SHIFT);
}

void gw_patience_result(struct gw_patience *patience, gw_time waited, uint32_t count,
                        uint32_t window)
{
    if (waited > patience->longest)
        patience->longest = waited;
    patience->results += count;
    if (patience->results < window)
        return;
    gw_patience_note(patience, patience->longest);
    patience->results -= window;
    patience->longest = 0;
}

gw_time gw_patience_of(const struct gw_patience *patience)
{
    if (patience->mean == 0)
        return patience->most;
    gw_time usual = gw_time_add(patience->mean, DEVIATIONS * patience->deviation);
    if (usual < patience->least)
        return patience->least;
    return usual < patience->most ? usual : patience->most;
}
