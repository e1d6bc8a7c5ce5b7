/* Tenants and places; see tenants.h. */
#include "core/tenants.h"

#include "core/job.h"

uint32_t gw_tenants_of(const struct gw_tenants *tenants, uint32_t job)
{
    uint32_t who = 0;
    while (who < tenants->count && tenants->keys[who] != gw_job_key(job))
        who++;
    return who;
}

bool gw_tenants_have_place(const uint32_t *held, uint32_t count, uint32_t who, uint32_t places,
                           uint32_t left)
{
    const uint32_t part = count ? places / 2 / count : 0;
    uint32_t kept = 0; /* for others, who have less than their part */
    if (who < count && held[who] < part)
        return left > 0;
    for (uint32_t i = 0; i < count; i++)
        kept += held[i] < part ? part - held[i] : 0;
    return left > kept;
}
