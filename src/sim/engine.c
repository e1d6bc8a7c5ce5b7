/*
 * Windows, threads and the serial phase; see sim_impl.h for the rules that make a run
 * deterministic.
 *
 * All threads run the same loop: their part of the window, a barrier, the serial phase (thread 0
 * only), a barrier. Windows in which nothing can happen are skipped.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "sim/audit.h"
#include "sim/calendar.h"
#include "sim/capture.h"
#include "sim/control.h"
#include "sim/jobs.h"
#include "sim/node_loop.h"
#include "sim/sample.h"
#include "sim/triggers.h"
#include "sim/watch.h"
#include "topo/memory.h"

enum {
#if defined(__SANITIZE_THREAD__) /* then a spin takes fifty times as long */
    SPINS_BEFORE_YIELD = 40,
#else
    SPINS_BEFORE_YIELD = 2000, /* a window is longer than a spin unless threads outnumber cores */
#endif
    YIELDS_BEFORE_SLEEP = 100, /* so long only where others need the cores: they are left to them */
    WINDOWS_PER_PROGRESS = 64,
    WINDOWS_PER_BALANCE = 64,
    POOL_IMBALANCE = 1 << 14, /* free packets: 1 MiB */
};

/* Sleeps until the phase is over; who ends it looks for sleepers after that, so either sees the
 * other. */
static void barrier_sleep(struct gw_sim *sim, uint32_t phase)
{
    pthread_mutex_lock(&sim->barrier_lock);
    atomic_fetch_add(&sim->barrier_sleepers, 1);
    while (atomic_load(&sim->barrier_phase) == phase)
        pthread_cond_wait(&sim->barrier_over, &sim->barrier_lock);
    atomic_fetch_sub(&sim->barrier_sleepers, 1);
    pthread_mutex_unlock(&sim->barrier_lock);
}

static void barrier_wait(struct gw_sim *sim)
{
    if (sim->part_count == 1)
        return;
    uint32_t phase = atomic_load_explicit(&sim->barrier_phase, memory_order_acquire);
    if (atomic_fetch_add_explicit(&sim->barrier_count, 1, memory_order_acq_rel) + 1 ==
        sim->part_count) {
        atomic_store_explicit(&sim->barrier_count, 0, memory_order_relaxed);
        atomic_store(&sim->barrier_phase, phase + 1);
        if (atomic_load(&sim->barrier_sleepers) == 0)
            return;
        pthread_mutex_lock(&sim->barrier_lock);
        pthread_cond_broadcast(&sim->barrier_over);
        pthread_mutex_unlock(&sim->barrier_lock);
        return;
    }
    for (uint32_t spins = 0;
         atomic_load_explicit(&sim->barrier_phase, memory_order_acquire) == phase;) {
        if (++spins <= SPINS_BEFORE_YIELD)
            continue;
        if (spins > SPINS_BEFORE_YIELD + YIELDS_BEFORE_SLEEP)
            barrier_sleep(sim, phase);
        else
            sched_yield();
    }
}

/* Evens out the free packets of the partitions: flows may run mostly one way. */
static void balance_pools(struct gw_sim *sim)
{
    for (uint32_t p = 0; p + 1 < sim->part_count; p++) {
        struct gw_pkt_pool *a = &sim->parts[p].pool, *b = &sim->parts[p + 1].pool;
        struct gw_pkt_pool *from = a->free_count > b->free_count ? a : b;
        struct gw_pkt_pool *to = from == a ? b : a;
        if (from->free_count - to->free_count < POOL_IMBALANCE)
            continue;
        for (uint32_t i = (from->free_count - to->free_count) / 2; i > 0; i--) {
            struct gw_pkt *pkt = gw_pkt_claim(from);
            gw_pkt_release(to, pkt);
        }
    }
}

static uint32_t flows_ended(const struct gw_sim *sim)
{
    uint32_t ended = 0;
    for (uint32_t p = 0; p < sim->part_count; p++)
        ended += sim->parts[p].flows_ended;
    return ended;
}

/* Between two windows, alone: triggers, what jobs agree on, the end, the next window, faults and
 * samples before it. */
static void serial_phase(struct gw_sim *sim)
{
    gw_sim_calendar_leave(sim);
    gw_sim_triggers(sim);
    gw_sim_watch_settle(sim);
    gw_sim_jobs_agree(sim);
    uint32_t ended = flows_ended(sim);
    if (sim->options.progress && sim->window_index % WINDOWS_PER_PROGRESS == 0)
        sim->options.progress(sim->options.progress_arg, ended, sim->awaited,
                              sim->window_index * sim->window);
    if (sim->window_index % WINDOWS_PER_BALANCE == 0)
        balance_pools(sim);
    uint64_t ahead = gw_sim_calendar_ahead(sim);
    bool is_done = sim->awaited > 0 && ended == sim->awaited;
    if (is_done || ahead == UINT64_MAX || sim->error ||
        (sim->window_index + ahead) * sim->window >= sim->scenario->time_limit) {
        sim->is_over = true;
        return;
    }
    sim->window_index += ahead;
    gw_sim_controls(sim, sim->window_index * sim->window);
    gw_sim_sample(sim, sim->window_index * sim->window);
}

static void *part_main(void *arg)
{
    struct gw_sim_part *part = arg;
    struct gw_sim *sim = part->sim;
    while (!sim->is_over) {
        gw_sim_run_places(part, gw_sim_calendar_enter(part));
        barrier_wait(sim);
        if (part == &sim->parts[0])
            serial_phase(sim);
        barrier_wait(sim);
    }
    return NULL;
}

int gw_sim_run(struct gw_sim *sim, char *why)
{
    pthread_t *threads = gw_memory_aligned(sim->part_count * sizeof(*threads));
    gw_sim_controls(sim, 0);
    gw_sim_sample(sim, 0);
    pthread_mutex_init(&sim->barrier_lock, NULL);
    pthread_cond_init(&sim->barrier_over, NULL);
    for (uint32_t p = 1; p < sim->part_count; p++)
        if (pthread_create(&threads[p], NULL, part_main, &sim->parts[p]) != 0) {
            fprintf(stderr, "gradwire: cannot start %u threads\n", sim->part_count);
            exit(EXIT_FAILURE);
        }
    part_main(&sim->parts[0]);
    for (uint32_t p = 1; p < sim->part_count; p++)
        pthread_join(threads[p], NULL);
    pthread_cond_destroy(&sim->barrier_over);
    pthread_mutex_destroy(&sim->barrier_lock);
    free(threads);
    int error = sim->error;
    if (!error)
        error = gw_sim_audit(sim);
    if (!error)
        error = gw_capture_write(sim);
    if (error)
        snprintf(why, GW_WHY_MAX, "%s", sim->why[0] ? sim->why : gw_error_message(error));
    return error;
}

const struct gw_flow_result *gw_sim_flows(const struct gw_sim *sim)
{
    return sim->flows;
}
