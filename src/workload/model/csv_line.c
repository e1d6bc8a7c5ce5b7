/* Columns of a line; see csv_line.h. */
#include "workload/model/csv_line.h"

#include <string.h>

char *gw_csv_trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        text[--length] = '\0';
    return text;
}

uint32_t gw_csv_split(char *line, char *columns[], uint32_t room)
{
    uint32_t count = 0;
    for (char *column; (column = strsep(&line, ",")); count++)
        if (count < room)
            columns[count] = gw_csv_trim(column);
    return count;
}
