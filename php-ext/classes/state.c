/* SPDX-License-Identifier: MIT
 *
 * The enum State and the library's states.
 */
#include "php_jobqueue.h"

#include <zend_enum.h>

#include "state_arginfo.h"

zend_class_entry *php_jobq_ce_state;

static const char *const case_names[JOBQ_STATES] = {"Ready", "Delayed", "Reserved", "Done", "Dead"};

void php_jobq_state_make(zval *out, jobq_state state)
{
    zend_object *one = zend_enum_get_case_cstr(php_jobq_ce_state,
                                               case_names[state < JOBQ_STATES ? state : JOBQ_DEAD]);
    ZVAL_OBJ_COPY(out, one);
}

bool php_jobq_state_value(zend_object *state, jobq_state *out)
{
    return jobq_state_parse(Z_STRVAL_P(zend_enum_fetch_case_value(state)), out) >= 0;
}

void php_jobq_register_state(void)
{
    php_jobq_ce_state = register_class_JobQueue_State();
}
