package demo

import (
	"context"
	"fmt"
	"sync"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
)

// keep says how to look around, and waits for the end.
func (d *demo) keep(ctx context.Context) {
	worker := d.workers[0].Name()
	d.print("",
		"The clusters run on until Ctrl-C. To look around, in another terminal:",
		"",
		"  export PATH="+d.bin()+":$PATH KUBECONFIG="+d.kubeconfig(),
		"",
		"  kubectl jobferry clusters                                # without --context: the hub",
		fmt.Sprintf("  kubectl jobferry jobs -n %s", scenario.Namespace),
		fmt.Sprintf("  kubectl jobferry describe -n %s %-24s # its shards", scenario.Namespace, scenario.Divided),
		"  kubectl create job hello --image=busybox -- echo hello   # namespace default is Jobferry's, too",
		"  kubectl wait job/hello --for=condition=Complete && kubectl jobferry logs hello",
		fmt.Sprintf("  kubectl -n %s create job again --from=cronjob/nightly", scenario.Namespace),
		fmt.Sprintf("  kubectl -n %s get jobs -w", scenario.Namespace),
		fmt.Sprintf("  kubectl --context %s -n %s get jobs,pods                # a worker", worker, scenario.Namespace),
		"  kubectl jobferry drain "+worker,
		"")
	for _, p := range d.processes {
		d.print("  tail -f " + p.LogFile())
	}
	var watching sync.WaitGroup
	for _, p := range d.processes {
		watching.Go(func() {
			select {
			case <-p.Ended():
				d.print(p.failure().Error())
			case <-ctx.Done():
			}
		})
	}
	<-ctx.Done()
	watching.Wait()
}
