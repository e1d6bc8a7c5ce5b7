/* What switches dropped, by class; see losses.h. */
#include "cli/losses.h"

#include <stdbool.h>
#include <stdio.h>

json_t *gw_losses_json(const struct gw_class_losses losses[GW_CLASSES])
{
    json_t *drops = json_array(), *unimportant = json_array(), *shed = json_array();
    for (uint32_t i = 0; i < GW_CLASSES; i++) {
        json_array_append_new(drops, json_integer((json_int_t)losses[i].drops));
        json_array_append_new(unimportant, json_integer((json_int_t)losses[i].unimportant));
        json_array_append_new(shed, json_integer((json_int_t)losses[i].shed));
    }
    return json_pack("{s:o, s:o, s:o}", "drops", drops, "unimportant", unimportant, "shed", shed);
}

void gw_losses_print(const struct gw_class_losses losses[GW_CLASSES])
{
    bool tells = losses[GW_CLASS_BEST_EFFORT].shed > 0;
    for (uint32_t i = GW_CLASS_BEST_EFFORT + 1; i <= GW_CLASS_DATA_MAX; i++)
        tells |= losses[i].drops > 0;
    for (uint32_t i = GW_CLASS_CONTROL; tells && i-- > 0;)
        if (losses[i].drops)
            printf("    class %u    %llu drops: %llu of unimportant packets, %llu of them shed\n",
                   i, (unsigned long long)losses[i].drops,
                   (unsigned long long)losses[i].unimportant, (unsigned long long)losses[i].shed);
}
