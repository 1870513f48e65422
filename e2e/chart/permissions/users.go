package permissions

// users are what the charts give to others than the program: to users of the hub, by its own roles
// view, edit and admin, and to whoever scrapes the metrics. Each verb is one that kubectl, the
// plugin or Prometheus needs.
var users = []Row{
	{Part: View, Group: "jobferry.dev", Resource: "workerclusters", Verbs: []string{"get", "list", "watch"},
		Why: "kubectl get workerclusters, kubectl jobferry clusters"},
	{Part: View, Group: "subresources.jobferry.dev", Resource: "jobs/pods", Verbs: []string{"get"}, Why: "kubectl jobferry pods"},
	{Part: View, Group: "subresources.jobferry.dev", Resource: "jobs/log", Verbs: []string{"get"}, Why: "kubectl jobferry logs"},
	{Part: View, Group: "subresources.jobferry.dev", Resource: "jobs/events", Verbs: []string{"get"}, Why: "kubectl jobferry events, describe"},
	{Part: View, Group: "subresources.jobferry.dev", Resource: "jobs/mirror", Verbs: []string{"get"}, Why: "kubectl jobferry describe"},
	{Part: View, Group: "subresources.jobferry.dev", Resource: "jobs/why", Verbs: []string{"get"}, Why: "kubectl jobferry why"},
	{Part: View, Group: "subresources.jobferry.dev", Resource: "dispatchedjobs", Verbs: []string{"get", "list", "watch"},
		Why: "kubectl get dispatchedjobs"},
	{Part: Edit, Group: "subresources.jobferry.dev", Resource: "jobs/exec", Verbs: []string{"get", "create"},
		Why: "kubectl jobferry exec: the manager asks for create, the hub's API server for get where a WebSocket begins"},
	{Part: Edit, Group: "subresources.jobferry.dev", Resource: "jobs/attach", Verbs: []string{"get", "create"}, Why: "kubectl jobferry attach, as for exec"},
	{Part: Edit, Group: "subresources.jobferry.dev", Resource: "jobs/portforward", Verbs: []string{"get", "create"},
		Why: "kubectl jobferry port-forward, as for exec"},
	{Part: Admin, Group: "jobferry.dev", Resource: "workerclusters", Verbs: []string{"create", "update", "patch", "delete"},
		Why: "kubectl jobferry register, unregister, cordon, drain; kubectl edit, apply and delete"},
	{Part: MetricsReader, Resource: "/metrics", Verbs: []string{"get"}, Why: "Prometheus reads the metrics"},
	{Part: KueueSecrets, Namespace: "kueue-system", Resource: "secrets", Verbs: []string{"get"},
		Why: "the kubeconfigs that MultiKueueClusters name; only with kueue.readSecrets"},
}
