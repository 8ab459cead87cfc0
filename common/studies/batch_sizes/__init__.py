"""Study: what is the largest batch that runs here, and which has the most throughput?"""
