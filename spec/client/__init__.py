"""What a client library keeps between an application and a server: what was seen, what is watched, what is awaited.

- `library`: the state machine; its events are what the application asks and what the connection brings.

Source: ZooKeeper's `ClientCnxn`, `ZKWatchManager`.
"""
