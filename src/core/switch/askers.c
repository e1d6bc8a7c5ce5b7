/* Which workers ask; see askers.h. */
#include "core/switch/askers.h"

#include <string.h>

#include "base/prng.h"

enum {
    WAYS = 8,           /* workers of a set, the newest first */
    SETS_EACH = 8,      /* for each job: twice the workers that one switch may add up */
    SETS_MAX = 1 << 10, /* of a tenant: 64 KB */
};

struct gw_asker {
    uint32_t job; /* 0: none */
    uint32_t address;
};

static uint32_t sets_of(uint32_t jobs_max)
{
    uint32_t sets = SETS_EACH;
    while (sets < SETS_MAX && sets / SETS_EACH < jobs_max)
        sets *= 2;
    return sets;
}

size_t gw_askers_size(uint32_t jobs_max, const struct gw_tenants *tenants)
{
    return sizeof(struct gw_asker) * WAYS * sets_of(jobs_max) * (tenants->count + 1);
}

void gw_askers_init(struct gw_askers *askers, void *memory, uint32_t jobs_max,
                    const struct gw_tenants *tenants)
{
    *askers =
        (struct gw_askers){.sets = memory, .tenants = tenants, .set_count = sets_of(jobs_max)};
    memset(memory, 0, gw_askers_size(jobs_max, tenants));
}

static struct gw_asker *set_of(const struct gw_askers *askers, uint32_t job, uint32_t address)
{
    uint32_t tenant = gw_tenants_of(askers->tenants, job);
    uint64_t hash = gw_mix64((uint64_t)job << 32 | address);
    uint32_t set = tenant * askers->set_count + (uint32_t)(hash & (askers->set_count - 1));
    return askers->sets + (size_t)set * WAYS;
}

/* The place of a worker in its set; WAYS: it has none. */
static uint32_t find(const struct gw_asker *set, uint32_t job, uint32_t address)
{
    uint32_t way = 0;
    while (way < WAYS && (set[way].job != job || set[way].address != address))
        way++;
    return way;
}

void gw_askers_note(struct gw_askers *askers, uint32_t job, uint32_t address)
{
    struct gw_asker *set = set_of(askers, job, address);
    uint32_t way = find(set, job, address);
    memmove(set + 1, set, (way < WAYS ? way : WAYS - 1) * sizeof(*set));
    set[0] = (struct gw_asker){job, address};
}

bool gw_askers_has(const struct gw_askers *askers, uint32_t job, uint32_t address)
{
    return find(set_of(askers, job, address), job, address) < WAYS;
}
