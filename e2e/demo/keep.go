package demo

import (
	"context"
	"sync"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
	"github.com/jobferry/jobferry/e2e/rig"
)

// long is a Job that runs for five minutes.
const long = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"long"},"spec":{"template":{"metadata":{"labels":{"` + rig.LabelRunFor + `":"5m"}},` +
	`"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"busybox"}]}}}}`

// keep says how to look around, and waits for the end.
func (d *demo) keep(ctx context.Context) {
	worker := d.workers[0].Name()
	d.print("",
		"The clusters run on until Ctrl-C. To look around, in another terminal:",
		"",
		"  export PATH="+d.bin()+":$PATH KUBECONFIG="+d.kubeconfig(),
		"",
		"  kubectl jobferry clusters                               # without --context: the hub",
		"  kubectl jobferry jobs -n "+scenario.Namespace,
		"  kubectl jobferry describe -n "+scenario.Namespace+" "+scenario.Divided+"                 # its shards",
		"  kubectl create job hello --image=busybox -- echo hello  # namespace default is Jobferry's, too",
		"  kubectl wait job/hello --for=condition=Complete && kubectl jobferry logs hello   # not kubectl logs: no Pod is here",
		"  kubectl -n "+scenario.Namespace+" create job again --from=cronjob/nightly",
		"  kubectl -n "+scenario.Namespace+" get jobs -w",
		"  kubectl --context "+worker+" -n "+scenario.Namespace+" get jobs,pods             # a worker",
		"",
		"Nodes are simulated: no image runs, logs are made up, and a Pod runs for a second, or as long as its label says:",
		"",
		"  echo '"+long+"' | kubectl create -f -",
		"  kubectl jobferry logs long --tail 5",
		"  kubectl jobferry drain "+worker+"                             # a Job that runs there moves",
		"  kubectl jobferry uncordon "+worker,
		"",
		"A Job that waits, and why:",
		"",
		"  kubectl create job big --image=busybox --dry-run=client -o yaml -- true |",
		"    kubectl set resources --local -f - --requests=cpu=1000 -o yaml | kubectl create -f -",
		"  kubectl jobferry why big",
		"",
		"One more worker: run \"make rig\" in another terminal, and with the kubeconfig that it prints for worker-1:",
		"",
		"  kubectl jobferry register north --worker-kubeconfig FILE --all-namespaces --labels name=north",
		"  kubectl jobferry move long --to north                   # by that label",
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
