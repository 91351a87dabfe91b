// A user of an installed library, in C++.
#include <cstdio>

#include <metaroce.h>

int main()
{
    mr_connection_config config;
    if (mr_connection_config_default(&config) != MR_OK || config.controller != MR_CONTROLLER_COUPLED)
        return 1;
    std::printf("consumer: %s\n", mr_error_string(MR_ERROR_MOVED));
    return 0;
}
