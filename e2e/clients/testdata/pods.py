"""What users do with Pods of a Job with the Python client: python3 pods.py KUBECONFIG NAMESPACE COMMAND JOB"""

import sys

from kubernetes import client, config, watch
from kubernetes.stream import stream

config.load_kube_config(sys.argv[1])
core, namespace, command, job = client.CoreV1Api(), sys.argv[2], sys.argv[3], sys.argv[4]
selector = "job-name=" + job


def names():
    return [pod.metadata.name for pod in core.list_namespaced_pod(namespace, label_selector=selector).items]


def pods():
    for pod in core.list_namespaced_pod(namespace, label_selector=selector).items:
        print(pod.metadata.name, pod.status.phase, pod.spec.node_name, *(c.name for c in pod.status.container_statuses))


def nodes():
    for node in core.list_node(label_selector="jobferry.dev/worker-cluster").items:
        print(node.metadata.name, *(c.type + "=" + c.status for c in node.status.conditions))


def logs():
    for name in names():
        print(core.read_namespaced_pod_log(name, namespace, tail_lines=1000))


def exec_():
    for name in names():
        said = ["sh", "-c", "echo said by $HOSTNAME"]
        print(stream(core.connect_get_namespaced_pod_exec, name, namespace, command=said, stdout=True, stderr=True, stdin=False, tty=False))


def watch_():
    for event in watch.Watch().stream(core.list_namespaced_pod, namespace, label_selector=selector):
        print(event["type"], event["object"].metadata.name, event["object"].status.phase)
        if event["object"].status.phase == "Succeeded":
            return


{"pods": pods, "nodes": nodes, "logs": logs, "exec": exec_, "watch": watch_}[command]()
