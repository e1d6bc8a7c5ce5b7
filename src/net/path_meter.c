/* Round trips and rates, as measured; see path_meter.h. */
#include "net/path_meter.h"

enum {
    SMOOTHING = 8,
};

/* How many windows have begun since `*window_at`, which becomes the beginning of the last: 0, 1, or
 * 2 for all more. */
static uint32_t turn(gw_time *window_at, gw_time now)
{
    if (now - *window_at < GW_PATH_METER_WINDOW)
        return 0;
    bool is_one = now - *window_at < 2 * GW_PATH_METER_WINDOW;
    *window_at = is_one ? *window_at + GW_PATH_METER_WINDOW : now;
    return is_one ? 1 : 2;
}

void gw_rtt_meter_take(struct gw_rtt_meter *meter, gw_time rtt, gw_time now)
{
    rtt += rtt == 0;
    if (meter->smoothed == 0)
        *meter = (struct gw_rtt_meter){.smoothed = rtt, .window_at = now};
    meter->smoothed = ((SMOOTHING - 1) * meter->smoothed + rtt) / SMOOTHING;
    uint32_t turns = turn(&meter->window_at, now);
    if (turns) {
        meter->least[1] = turns == 1 ? meter->least[0] : 0;
        meter->least[0] = 0;
    }
    if (meter->least[0] == 0 || rtt < meter->least[0])
        meter->least[0] = rtt;
}

gw_time gw_rtt_meter_least(const struct gw_rtt_meter *meter)
{
    bool is_before = meter->least[1] && meter->least[1] < meter->least[0];
    return is_before ? meter->least[1] : meter->least[0];
}

void gw_rate_meter_take(struct gw_rate_meter *meter, uint64_t bytes, gw_time now)
{
    if (!meter->has_begun)
        *meter = (struct gw_rate_meter){
            .has_begun = true, .bytes = bytes, .since = now, .window_at = now};
    gw_time span = now - meter->since;
    if (span < GW_PATH_METER_SPAN)
        return;
    uint64_t rate = (uint64_t)((unsigned __int128)(bytes - meter->bytes) * 8 * GW_S / span);
    meter->bytes = bytes;
    meter->since = now;
    uint32_t turns = turn(&meter->window_at, now);
    if (turns) {
        meter->most_bps[1] = turns == 1 ? meter->most_bps[0] : 0;
        meter->most_bps[0] = 0;
    }
    if (rate > meter->most_bps[0])
        meter->most_bps[0] = rate;
}

uint64_t gw_rate_meter_most(const struct gw_rate_meter *meter)
{
    return meter->most_bps[1] > meter->most_bps[0] ? meter->most_bps[1] : meter->most_bps[0];
}
