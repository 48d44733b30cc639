//! What is printed after the classic text: the plan kept, three latencies, kinds of requests, the verdict.
