package demo

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
)

// keep says how to look around, and waits for the end.
func (d *demo) keep(ctx context.Context) {
	files := []string{d.hub.Kubeconfig()}
	for _, w := range d.workers {
		files = append(files, w.Kubeconfig())
	}
	first := d.workers[0].Name()
	d.print("",
		"The clusters run on until Ctrl-C. To look around, in another terminal:",
		"",
		"  export KUBECONFIG="+strings.Join(files, ":"),
		"  alias kubectl="+d.hub.KubectlProgram(),
		"  alias kubectl-jobferry="+d.programs[pluginProgram],
		"",
		"  kubectl get workerclusters                                # without --context: the hub",
		fmt.Sprintf("  kubectl -n %s get jobs -w", scenario.Namespace),
		fmt.Sprintf("  kubectl -n %s create job again --from=cronjob/nightly", scenario.Namespace),
		fmt.Sprintf("  kubectl -n %s describe job again", scenario.Namespace),
		fmt.Sprintf("  kubectl-jobferry describe -n %s %s                     # its shards", scenario.Namespace, scenario.Divided),
		fmt.Sprintf("  kubectl --context %s -n %s get jobs,pods                # a worker", first, scenario.Namespace),
		fmt.Sprintf("  kubectl patch workercluster %s --type=merge -p '{\"spec\":{\"cordoned\":true}}'", first),
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
