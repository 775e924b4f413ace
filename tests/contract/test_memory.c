/* SPDX-License-Identifier: MIT
 *
 * The contract on the memory driver.
 */
#include "contract/contract.h"

static const char *fresh_dsn(void)
{
    return "memory:";
}

int main(void)
{
    static const contract_driver memory = {"contract: memory", fresh_dsn};

    return contract_main(&memory, NULL, 0);
}
