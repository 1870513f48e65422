"""What Airflow's KubernetesJobOperator asks for, step by step: python3 airflow.py KUBECONFIG NAMESPACE STEP JOB"""

import sys

from kubernetes import client, config

config.load_kube_config(sys.argv[1])
core, jobs, namespace, step, name = client.CoreV1Api(), client.BatchV1Api(), sys.argv[2], sys.argv[3], sys.argv[4]
labels = {"dag_id": "dag", "kubernetes_pod_operator": "True", "run_id": "manual__2026-01-01", "task_id": "task"}
selector = ",".join(key + "=" + value for key, value in sorted(labels.items())) + ",already_checked!=True,!airflow-worker"


def create():
    container = client.V1Container(name="base", image="example.org/task")
    rig = {"rig.jobferry.dev/run-for": "20s", "rig.jobferry.dev/exit-code": "1"}
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels={**labels, "airflow_version": "3.1.0", "try_number": "1", **rig}),
        spec=client.V1PodSpec(restart_policy="Never", containers=[container]),
    )
    spec = client.V1JobSpec(backoff_limit=0, parallelism=1, completions=1, template=template)
    jobs.create_namespaced_job(namespace, client.V1Job(metadata=client.V1ObjectMeta(name=name), spec=spec))


def find():
    found = core.list_namespaced_pod(namespace=namespace, label_selector=selector).items
    if not found:
        sys.exit("No pods running with labels " + selector)
    return found


def pods():
    print(*(pod.metadata.name for pod in find()))


def job():
    status = jobs.read_namespaced_job_status(name, namespace).status
    print(*(c.type for c in status.conditions or [] if c.type in ("Complete", "Failed")))


def logs():
    for pod in find():
        pod = core.read_namespaced_pod(pod.metadata.name, namespace)
        log = core.read_namespaced_pod_log(
            name=pod.metadata.name, namespace=namespace, container="base", follow=True, timestamps=True, _preload_content=False
        )
        print(log.data.decode("utf8"))


{"create": create, "pods": pods, "job": job, "logs": logs}[step]()
