"""What users do with the Python client: python3 client.py KUBECONFIG NAMESPACE COMMAND ARGUMENTS"""

import sys

from kubernetes import client, config

config.load_kube_config(sys.argv[1])
jobs, namespace, command, arguments = client.BatchV1Api(), sys.argv[2], sys.argv[3], sys.argv[4:]


def create(name):
    container = client.V1Container(name="main", image="example.org/main")
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels={"rig.jobferry.dev/run-for": "forever"}),
        spec=client.V1PodSpec(restart_policy="Never", containers=[container]),
    )
    job = client.V1Job(metadata=client.V1ObjectMeta(name=name), spec=client.V1JobSpec(template=template))
    jobs.create_namespaced_job(namespace, job)


def replace(name, parallelism):
    job = jobs.read_namespaced_job(name, namespace)
    if hasattr(job.spec, "managed_by"):  # a client since 30 knows it: it does as an older one
        job.spec.managed_by = None
    job.spec.parallelism = int(parallelism)
    job.metadata.labels = {**(job.metadata.labels or {}), "parallelism": parallelism}
    jobs.replace_namespaced_job(name, namespace, job)


def patch(name, parallelism):
    jobs.patch_namespaced_job(name, namespace, {"spec": {"parallelism": int(parallelism)}})


def status(name):
    job = jobs.read_namespaced_job_status(name, namespace)
    print(*(c.type + "=" + c.status for c in job.status.conditions or []))


def delete(name):
    jobs.delete_namespaced_job(name, namespace, propagation_policy="Foreground")


{"create": create, "replace": replace, "patch": patch, "status": status, "delete": delete}[command](*arguments)
