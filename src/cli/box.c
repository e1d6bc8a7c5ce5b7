/* Box plots; see box.h. */
#include "cli/box.h"

#include <stdlib.h>

#include "base/assert.h"

enum {
    QUARTERS = 4,
};

const char *const gw_box_names[GW_BOX_PARTS] = {"min", "q1", "median", "q3", "max", "mean"};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void gw_box_of(double *numbers, size_t count, double box[GW_BOX_PARTS])
{
    double sum = 0;
    GW_ASSERT(count > 0);
    qsort(numbers, count, sizeof(*numbers), compare_doubles);
    for (size_t quarter = 0; quarter <= QUARTERS; quarter++) {
        size_t at = quarter * (count - 1) / QUARTERS, rest = quarter * (count - 1) % QUARTERS;
        double next = rest ? numbers[at + 1] : numbers[at];
        box[quarter] = numbers[at] + (next - numbers[at]) * (double)rest / QUARTERS;
    }
    for (size_t i = 0; i < count; i++)
        sum += numbers[i];
    box[QUARTERS + 1] = sum / (double)count;
}
