# A provisioner in bash: three static programs of Debian and Kubernetes, and one script.
# Build context: bash, busybox, kubectl and provision.
FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
COPY bash kubectl /bin/
COPY provision /provision
ENV PATH=/bin
USER 65532:65532
ENTRYPOINT ["/provision"]
