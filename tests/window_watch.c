/* Windows of workers, compared; see window_watch.h. */
#include "window_watch.h"

#include "support.h"

void gw_window_watch_init(struct gw_window_watch *watch, uint32_t first_seq)
{
    *watch = (struct gw_window_watch){.first_seq = first_seq, .apart_since = GW_TIME_NEVER};
}

void gw_window_watch_note(struct gw_window_watch *watch, const struct gw_worker *worker)
{
    uint64_t cuts = gw_worker_stats(worker)->cuts;
    watch->least_cuts = watch->has_cuts && watch->least_cuts < cuts ? watch->least_cuts : cuts;
    watch->most_cuts = watch->has_cuts && watch->most_cuts > cuts ? watch->most_cuts : cuts;
    watch->has_cuts = true;
    uint32_t at = gw_worker_expected(worker) - watch->first_seq;
    assert_in_range(at, 0, GW_WATCH_FRAGMENTS_MAX - 1);
    uint64_t window = gw_worker_window(worker);
    if (watch->windows[at]) {
        watch->compared++;
        watch->differ += watch->windows[at] != window;
    }
    watch->windows[at] = window;
}

void gw_window_watch_end(struct gw_window_watch *watch, gw_time now)
{
    uint64_t apart = watch->has_cuts ? watch->most_cuts - watch->least_cuts : 0;
    watch->has_cuts = false;
    if (apart > watch->apart_most)
        watch->apart_most = apart;
    if (apart && watch->apart_since == GW_TIME_NEVER)
        watch->apart_since = now;
    if (apart)
        return;
    if (watch->apart_since != GW_TIME_NEVER && now - watch->apart_since > watch->apart_time)
        watch->apart_time = now - watch->apart_since;
    watch->apart_since = GW_TIME_NEVER;
}
