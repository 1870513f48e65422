// Package clients has clients that know nothing of Jobferry use a hub, as they are: kubectl,
// Debian's Python client, and, in packages of their own, Terraform and Helm 4. Others are played,
// request by request: k9s, Ansible, Airflow, Nextflow and KEDA.
//
// Their namespaces have the label with which admission gives all new Jobs to the dispatcher,
// because such clients don't know spec.managedBy. Those that look for a Job's Pods are tried twice:
// before the hub shows Pods, and then. docs/how-to/tools.md says what comes of it.
//
// # How clients treat Jobferry's conditions
//
// What was read in the source of each client, for docs/how-to/tools.md. These look for a type:
//
//   - kube-controller-manager: CronJobs, and the TTL of finished Jobs: Complete or Failed that is
//     True
//     https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controller/job/util/utils.go
//   - kubectl get job: five types that it knows, in its order, not in the Job's; Running if none
//     is True
//     https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/printers/internalversion/printers.go#L1278
//   - kubectl wait: the type that you name, without regard to case. It also waits for
//     jobferry.dev/Placed, and with =False until the Job waits
//     https://github.com/kubernetes/kubectl/blob/dee3483a3d6a/pkg/cmd/wait/condition.go#L54
//   - Helm 3, hooks: Complete or Failed that is True
//     https://github.com/helm/helm/blob/v3.22.0/pkg/kube/client.go#L824
//   - Helm 4, hooks and --wait-for-jobs: the same. Before that, kstatus
//     https://github.com/helm/helm/blob/e9b85e4de16a/internal/statusreaders/job_status_reader.go#L64
//   - kstatus: Reconciling or Stalled on any object; of a Job Complete, Failed, and upstream
//     Suspended. Otherwise a Job is current once it has a start time: so Flux waits for a Job
//     that waits for a worker, until its timeout
//     https://github.com/kubernetes-sigs/cli-utils/blob/5895ad6c17dd/pkg/kstatus/status/core.go#L533
//     https://github.com/fluxcd/cli-utils/blob/967855fb3343/pkg/kstatus/status/core.go#L533
//   - Argo CD: Failed, Complete, Suspended; else *Progressing*
//     https://github.com/argoproj/argo-cd/blob/37ee0097cf85/gitops-engine/pkg/health/health_job.go
//   - kapp: Complete or Failed that is True
//     https://github.com/carvel-dev/kapp/blob/a89576c50397/pkg/kapp/resourcesmisc/batch_v1_job.go
//   - Terraform, wait_for_completion: the same. It doesn't read status into its state
//     https://github.com/hashicorp/terraform-provider-kubernetes/blob/3a33fb6cc605/kubernetes/resource_kubernetes_job_v1.go#L284
//   - Pulumi: the same, and a start time
//     https://github.com/pulumi/pulumi-kubernetes/blob/94977969d641/provider/pkg/await/checker/job/check.go
//   - Ansible's kubernetes.core, wait_condition: the type that you name
//     https://github.com/ansible-collections/kubernetes.core/blob/ec8942dd9060/plugins/module_utils/k8s/waiter.py#L85
//   - Spinnaker: Failed that is True, and numbers
//     https://github.com/spinnaker/clouddriver/blob/2f5e98f0320a/clouddriver-kubernetes/src/main/java/com/netflix/spinnaker/clouddriver/kubernetes/model/KubernetesJobStatus.java
//   - Airflow: Complete or Failed, of whatever status
//     https://github.com/apache/airflow/blob/013e7339e15bf6671c9d350f4458306e2e33a0f6/providers/cncf/kubernetes/src/airflow/providers/cncf/kubernetes/hooks/kubernetes.py
//   - Nextflow: of a Job without Pods in sight, as on a hub: its numbers, and then Complete or
//     Failed
//     https://github.com/nextflow-io/nextflow/blob/2aad02f65758/plugins/nf-k8s/src/main/nextflow/k8s/client/K8sClient.groovy#L411
//   - Kueue: Complete or Failed that is True
//     https://github.com/kubernetes-sigs/kueue/blob/00b345ff74d7e239a85819c5ee3213ae4a954d5b/pkg/controller/jobs/job/job_controller.go
//   - JobSet: the same
//     https://github.com/kubernetes-sigs/jobset/blob/08dfbdfd6827/pkg/controllers/jobset_controller.go#L1081
//   - KEDA's ScaledJob: the same
//     https://github.com/kedacore/keda/blob/8b4f083ca8c8/pkg/scaling/executor/scale_jobs.go#L210
//   - kube-state-metrics: Complete, Failed, Suspended: no series is about others
//     https://github.com/kubernetes/kube-state-metrics/blob/c92fe0c5ce02/internal/store/job.go
//   - Headlamp: Failed, Complete, Suspended that is True; the page of a Job lists all conditions,
//     with Jobferry's
//     https://github.com/kubernetes-sigs/headlamp/blob/6d2b42cc71d4/frontend/src/components/job/List.tsx#L32
//   - Rancher: types that it knows. Of others, one with the reason Error is an error: Jobferry
//     has no such reason
//     https://github.com/rancher/wrangler/blob/8238115126a8/pkg/summary/summarizers.go#L332
//
// These read no condition:
//
//   - kubectl describe job: https://github.com/kubernetes/kubectl/blob/dee3483a3d6a/pkg/describe/describe.go#L2319
//   - Helm 3's --wait-for-jobs: https://github.com/helm/helm/blob/v3.22.0/pkg/kube/ready.go
//   - the Python client's example: https://github.com/kubernetes-client/python/blob/024658493d12/examples/job_crud.py
//   - Prefect's worker: https://github.com/PrefectHQ/prefect/blob/ce79dd3d6cfa/src/integrations/prefect-kubernetes/prefect_kubernetes/observer.py#L730
//   - Dagster: https://github.com/dagster-io/dagster/blob/02e00effe1822e595ca0722c011a4a3e046997fa/python_modules/libraries/dagster-k8s/dagster_k8s/client.py
//   - Metaflow: https://github.com/Netflix/metaflow/blob/d2dd7f953574/metaflow/plugins/kubernetes/kubernetes_job.py#L585
//   - Snakemake: https://github.com/snakemake/snakemake-executor-plugin-kubernetes/blob/d5f720e99238/snakemake_executor_plugin_kubernetes/__init__.py#L477
//   - k9s: https://github.com/derailed/k9s/blob/24cf4628541e/internal/render/job.go
package clients
