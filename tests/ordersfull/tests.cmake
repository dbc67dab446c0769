# SPDX-License-Identifier: MIT OR Apache-2.0
#
# tests/orders with one more preemption and one more old value in each order, and more orders that are drawn.
weft_part(ordersfull sched)

orders(orders)
# The mutex has most orders: two minutes, every third day.
weft_turn(longest mutex_ "" "")
foreach(which ${longest} event group once future chan_closed rt_pin)
	weft_test(${which} COMMAND @orders.gcc ${which} 0 1 SECONDS 600)
endforeach()
weft_test(drawn COMMAND @orders.gcc drawn_ 4000 SECONDS 600)
